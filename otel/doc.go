// Package otel makes OpenTelemetry spans and metrics of guards and locks. It is a module of its own.
//
//	t, err := otel.New(otel.Config{}) // the global providers
//	...
//	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", Hooks: t.Guard("shop"), Observers: []cacheguard.Observer{t.Observer("shop")}})
//	...
//	t.Watch("shop", guard)
//	t.Feed("shop", feed.Stats) // of package cdc
//
// # Spans
//
//	cacheguard.get         a Get or a Fetch, with its outcome
//	cacheguard.get_many    a GetMany
//	cacheguard.load        a run of a loader, whose own spans are within it; it belongs to the get that made it necessary
//	cacheguard.wait        waiting for a load of another call, here or on another instance, or for the end of an update
//	cacheguard.update      an Update or UpdateMany, with the wait for its locks
//	cacheguard.invalidate  an Invalidate
//	cacheguard.lock        a call that asked for a lock, until it had it or was refused
//
// They have the attribute cacheguard.cache or cacheguard.lock, the name that was given to Guard or Lock. A
// key is on a span only with Config.Keys. Absence (ErrNotFound, ErrNotCached) and a refused lock are not errors of a span.
//
// # Links
//
// A wait is linked to the get, or get_many, whose load it waited for: in that trace, the load is a child of the span that the
// link leads to. This works whichever instance runs the load, and also if the load failed or its process died. The lease in
// Redis carries the ids of trace and span, so it costs no request. There is no link
//
//   - if the trace of the load is not sampled;
//   - from a caller that left a load of its own instance before its end;
//   - from a hit to the load that stored the value, as nobody waited for that;
//   - if the instance that loads does not use this package, or the wait was for an update.
//
// After a takeover, the links of the waits lead to the load that was taken over.
//
// # Metrics
//
// Durations are histograms in seconds, with 7 bounds from 250 microseconds to 5 seconds; stale ages have 4. A View of the SDK has others, for
// the instruments cacheguard.*.duration. No key, name of a lock or text of an error is an attribute.
//
//	cacheguard.get.duration           {cacheguard.cache, cacheguard.outcome, error.type}  Get and Fetch, and each key of a GetMany; not
//	                                  what a middleware.Cache reads for a page
//	cacheguard.load.duration          {cacheguard.cache, error.type}  runs of loaders; of a GetMany, for each key
//	cacheguard.wait.duration          {cacheguard.cache, error.type}  waits for other calls' loads
//	cacheguard.fill.rejected          {cacheguard.cache, cacheguard.reason}  loaded values that were not stored: overtaken or unstorable
//	cacheguard.stale.age              {cacheguard.cache}  how long past their TTL values were served
//	cacheguard.entry.damaged          {cacheguard.cache}  entries that could not be read
//	cacheguard.lease.lost             {cacheguard.cache}  loads that lost their lease
//	cacheguard.lease.takeovers        {cacheguard.cache}  leases taken over from an instance that did not renew them
//	cacheguard.redis.errors           {cacheguard.cache, cacheguard.operation}  operations that failed
//	cacheguard.NAME                   {cacheguard.cache}  each number of Guard.Stats().All(), under its name without _total, such as
//	                                  cacheguard.loads_in_flight (Watch)
//	cacheguard.lock.wait.duration     {cacheguard.lock, cacheguard.outcome}  calls that asked for a lock: acquired, refused or error
//	cacheguard.lock.hold.duration     {cacheguard.lock}  how long locks were held
//	cacheguard.lock.lost              {cacheguard.lock}  locks that were found lost when they were unlocked
//	cacheguard.feed.reading           {cacheguard.feed}  1 if this instance reads the log (Feed, as what follows)
//	cacheguard.feed.failing           {cacheguard.feed}  1 if the feed is in trouble
//	cacheguard.feed.behind            {cacheguard.feed}  how old a value in the cache can be, in seconds, if this instance reads
//	cacheguard.feed.behind.bytes      {cacheguard.feed}  what of the log is not yet invalidated
//	cacheguard.feed.retained.bytes    {cacheguard.feed}  what the database keeps of its log for the feed
//	cacheguard.feed.rows              {cacheguard.feed}  rows of mapped tables that have changed
//	cacheguard.feed.invalidations     {cacheguard.feed}  keys and tags that were invalidated
//	cacheguard.feed.held              {cacheguard.feed}  1 if a transaction left open keeps the database from forgetting its log
//	cacheguard.feed.unmapped          {cacheguard.feed}  rows without keys, so that kinds were invalidated whole
//	cacheguard.feed.whole             {cacheguard.feed}  how often kinds were invalidated whole
//	cacheguard.feed.reconnects        {cacheguard.feed}  how often reading ended with an error
//
// A service that already exports metrics with package metrics takes the spans alone: Hooks: t.Guard("shop").
package otel

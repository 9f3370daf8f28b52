// Package metrics exports Prometheus metrics of guards, locks and response caches.
//
//	m, err := metrics.New(prometheus.DefaultRegisterer, metrics.Config{Routes: []string{"/products/{id}"}})
//	...
//	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", Observers: []cacheguard.Observer{m.Guard("shop")}})
//	...
//	m.Watch("shop", guard)
//	m.Feed("shop", feed.Stats) // of package cdc
//
// # Labels
//
// A key, name of a lock, path or error is never a label. The labels cache and lock have the names that the program gives to Guard, Lock
// and HTTP, and the names of its Caches (cacheguard.NewCache); routes come from Config.Routes; there is "other", too. So the
// number of series is known when the program has started, and each series exists from the beginning, with the value 0: docs/production.md has
// the numbers. Config.Detailed has about three times as many. Calls through a Cache have the Cache's name as their label cache, all others that
// of the Guard.
//
// # What is exported
//
// A middleware.Cache may read its Guard more than once for a page. So requests for pages are counted once, in
// cacheguard_http_requests_total with the cache label that was given to HTTP, and not in the Guard's cacheguard_requests_total,
// cacheguard_request_duration_seconds and cacheguard_loads_avoided_total: the hit ratio of the Guard counts its own Gets. A page that
// is made is a load of the Guard's.
//
//	cacheguard_requests_total{cache,result}           answers of Get, GetMany and Fetch; result is an Outcome, missed
//	                                                  (nothing there, and no loader), left (the caller cancelled) or error
//	cacheguard_request_duration_seconds{cache,result} how long they took; result is hit (local, stale and negative, too), loaded (shared
//	                                                  and bypassed, too) or error (missed and left, too); with Config.Detailed,
//	                                                  as above; Config.TraceID adds exemplars
//	cacheguard_requests_waiting{cache}                requests that wait for a load, here or on another instance (Watch)
//	cacheguard_loads_avoided_total{cache,reason}      requests that would have loaded without this library; reason is shared
//	                                                  (a load, here or on another instance) or stale
//	cacheguard_joins_total{cache}                     requests that waited for a load of another request of their instance
//	cacheguard_load_duration_seconds{cache,result}    runs of loaders; result is ok, absent, abandoned
//	                                                  (nobody waited any more) or error
//	cacheguard_loads_in_flight{cache}                 loaders that run (Watch)
//	cacheguard_loads_queued{cache}                    loads that wait for one of MaxLoads (Watch)
//	cacheguard_loads_limit{cache}                     MaxLoads; 0: no limit (Watch)
//	cacheguard_limiter_queued{cache}                  loads that wait for Config.Limiter (Watch)
//	cacheguard_rejected_fills_total{cache,reason}     loaded values that were not stored: overtaken or unstorable
//	cacheguard_stale_age_seconds{cache}               how long past their TTL values were served
//	cacheguard_damaged_entries_total{cache}           entries that could not be read
//	cacheguard_leases_lost_total{cache}               loads that lost their lease
//	cacheguard_takeovers_total{cache}                 leases taken over from an instance that did not renew them
//	cacheguard_redis_errors_total{cache,op}           operations that failed
//	cacheguard_breakers_open{cache}                   circuit breakers that are open; more than one on a cluster (Watch)
//	cacheguard_slow_parts{cache}                      parts of the keyspace in which Redis takes longer than the loads
//	                                                  that it saves (Watch)
//	cacheguard_hedged_loads_total{cache}              loads beside a Redis that kept calls waiting (Watch)
//	cacheguard_hedges_won_total{cache}                calls that such a load answered (Watch)
//	cacheguard_pending_invalidations{cache}              keys whose invalidation is still to be sent (Watch)
//	cacheguard_pending_invalidations_age_seconds{cache}  since when some are (Watch)
//	cacheguard_refused_messages{cache}                   to local tiers, about invalidations: Redis does not let the process publish them (Watch)
//	cacheguard_refused_messages_age_seconds{cache}       since when some are (Watch)
//	cacheguard_intents{cache}                         intents of transactions and updates that are not done (Watch)
//	cacheguard_intent_oldest_seconds{cache}           since when the oldest of these stands (Watch)
//	cacheguard_overdue_total{cache}                   updates and intents that outlasted UpdateTimeout (Watch)
//	cacheguard_bypassed{cache}                        1 if the cache is bypassed: Guard.Bypass (Watch)
//	cacheguard_warming{cache}                         calls of Cache.Warm under way (Watch)
//	cacheguard_failed_refreshes_total{cache}          loads in the background that failed; no caller had their errors (Watch)
//	cacheguard_unknown_names{cache}                   invalidated tags and keys of a kind that no load has had: mistyped ones, perhaps (Watch)
//	cacheguard_subscription_up{cache}                 1 if messages of other instances arrive, or none were needed yet (Watch)
//	cacheguard_local_entries{cache}                   entries in the local tier (Watch)
//	cacheguard_local_bytes{cache}                     about what they take, with LocalConfig.MaxBytes (Watch)
//	cacheguard_local_evictions_total{cache}           entries that gave way to others there (Watch)
//	cacheguard_read_bytes_total{cache}                bytes of entries read from Redis (Watch)
//	cacheguard_written_bytes_total{cache}             bytes of entries that loads stored (Watch)
//	cacheguard_lock_wait_seconds{lock,result}         calls that asked for a lock; result is acquired, refused or error
//	cacheguard_lock_hold_seconds{lock}                how long locks were held
//	cacheguard_locks_lost_total{lock,reason}          locks that were found lost when they were unlocked; reason is revoked if somebody
//	                                                  took them away, else lost
//	cacheguard_http_requests_total{cache,route,result}  requests; result is a middleware.Result; passed, too, where somebody has turned the cache off
//	cacheguard_http_request_duration_seconds{cache,result}  how long they took; result is hit (stale and faulty, too), loaded (shared, bypassed,
//	                                                  passed and refused, too) or failed; with Config.Detailed, as above
//	cacheguard_http_not_stored_total{cache,reason}    of those that were passed, the ones that a cache might answer, but for their response:
//	                                                  reason is one of middleware.Reasons
//	cacheguard_feed_reading{feed}                     1 if this instance reads the log (Feed)
//	cacheguard_feed_failing{feed}                     1 if the feed is in trouble (Feed)
//	cacheguard_feed_behind_seconds{feed}              how old a value in the cache can be, if this instance reads (Feed)
//	cacheguard_feed_behind_bytes{feed}                what of the log is not yet invalidated (Feed)
//	cacheguard_feed_retained_bytes{feed}              what the database keeps of its log for the feed (Feed)
//	cacheguard_feed_rows_total{feed}                  rows of mapped tables that have changed (Feed)
//	cacheguard_feed_invalidations_total{feed}         keys and tags that were invalidated (Feed)
//	cacheguard_feed_held{feed}                        1 if a transaction left open keeps the database from forgetting its log (Feed)
//	cacheguard_feed_unmapped_total{feed}              rows without keys, so that kinds were invalidated whole (Feed)
//	cacheguard_feed_whole_total{feed}                 how often kinds were invalidated whole (Feed)
//	cacheguard_feed_reconnects_total{feed}            how often reading ended with an error (Feed)
package metrics

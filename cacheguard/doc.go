// Package cacheguard is a read-through cache on Redis or Valkey, without cache stampedes: it loads a missing entry
// once, however many instances and callers ask for it at the same time, and it never stores a value that a write has
// overtaken.
//
//	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", TTL: time.Minute})
//	...
//	p, err := cacheguard.Get(ctx, guard, "product:42", func(ctx context.Context) (Product, error) {
//		return db.Product(ctx, 42)
//	})
//
// # Entry points
//
//   - New makes a Guard: one per process and Prefix. Guard.SelfCheck checks that Redis allows all it needs; Guard.Close
//     ends it.
//   - Get reads one key, GetMany reads many, and Fetch reads values that carry their own freshness.
//   - NewCache makes a Cache, a typed view of a Guard for one kind of thing, with Get, GetMany, Invalidate, Update and
//     Put.
//   - Call Guard.Invalidate after a write, or let Guard.Update or Guard.UpdateMany make the write.
//   - SetTTL, SetTags and ErrNotFound are for loaders. Hooks and Guard.Stats are for monitoring.
//   - Guard.Inspect shows the state of a key. Guard.Bypass and Guard.BypassFleet turn the cache off
//     for a while.
//
// # Guarantees
//
//   - One load per key in the whole fleet, while Redis keeps the lease.
//   - Never a stale fill, even when it does not: a load stores its value only if nothing invalidated the key, and no
//     other load stored a value, since it began.
//   - A Get that begins after an Invalidate returned nil, in any process, never returns a value loaded before it (but
//     see Limits about local tiers).
//   - InvalidateTags promises the same for all entries with a tag, and InvalidateAll for all entries under
//     the Prefix.
//   - Cancelling one caller, even the first, never fails another. A loaded value reaches everyone who waits for it,
//     even if Redis fails.
//
// # Limits
//
//   - A second load runs beside the first if Redis does not answer within RedisTimeout, and after WaitTimeout. One that
//     stores nothing runs when Redis keeps a call waiting for longer than HedgeAfter.
//   - Redis replicates asynchronously: a failover to a replica that lags behind can forget an invalidation or a lease.
//   - The instances of a Ring may use different shards for a key, and then an invalidation reaches one of them.
//   - A loader can get a row from before the write, although it runs after the invalidation: from a lagging database
//     replica, or in a transaction whose snapshot is older than the write. Its value is stored, and served until its
//     TTL. So a loader should begin its own transaction, or read outside any.
//   - A Redis that restarts from an older RDB or AOF file has the entries of that time again, also entries that were
//     invalidated since.
//   - If a writer does not call Invalidate, only the TTL bounds how long the old value lives. The feeds of package cdc
//     invalidate what such writers change.
//   - With a local tier (Config.Local), an Invalidate reaches other instances by a message. Until it arrives, they may
//     serve the value in their memory: see LocalConfig.
//   - Callers that share a read or a load get the same decoded value, so values are read-only: copy what you want to
//     change. The callers of a load get the value that the loader returned; others get it through the Codec. With
//     encoding/json, unexported fields and the types behind an interface are lost on the way.
//
// # How it works
//
// docs/design/protocol.md has the protocol: how a Get is answered, a miss over two instances, writes, outages, and what
// can go wrong at each step. It ends with where each part is in the code. CONTRIBUTING.md has the files and tests for
// each change.
package cacheguard

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
//   - SetTTL, SetTags and ErrNotFound are for loaders. ClassOf says what an error means to a client. Hooks and
//     Guard.Stats are for monitoring.
//   - Guard.Inspect shows the state of a key. Guard.Bypass and Guard.BypassFleet turn the cache off
//     for a while.
//
// # Guarantees
//
//   - One load per key in the whole fleet, while Redis keeps the lease.
//   - Never a stale fill, even when it does not: a load stores its value only if nothing invalidated the key, and no
//     other load stored a value, since it began.
//   - A Get that begins after an Invalidate, InvalidateTags or InvalidateAll returned nil, in any process, never
//     returns a value loaded before it.
//   - Cancelling one caller, even the first, never fails another. A loaded value reaches everyone who waits for it,
//     even if Redis fails.
//
// # Limits
//
// docs/guarantees.md has all of them. Those that a program must know:
//
//   - Callers that share a read or a load get the same decoded value, so values are read-only: copy what you want to
//     change. With encoding/json, unexported fields and the types behind an interface are lost on the way.
//   - A loader can get a row from before the write from a lagging database replica, or in a transaction whose snapshot
//     is older. So a loader should begin its own transaction, or read outside any.
//   - If a writer does not call Invalidate, only the TTL bounds how long the old value lives, or a feed of package cdc.
//   - With Config.Local, an Invalidate reaches other instances by a message: see LocalConfig.
//   - Redis replicates asynchronously: a failover, or a restart from an older file, can forget an invalidation.
//
// # How it works
//
// docs/design/protocol.md has the protocol, and what can go wrong at each step. CONTRIBUTING.md has the files and tests
// for each change.
package cacheguard

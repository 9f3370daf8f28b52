// Package cacheguard is a read-through cache on Redis or Valkey, without cache stampedes: it loads a missing entry
// once, however many instances and callers ask for it, and it never stores a value that a write has overtaken.
//
//	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", TTL: time.Minute})
//	...
//	p, err := cacheguard.Get(ctx, guard, "product:42", func(ctx context.Context) (Product, error) {
//		return db.Product(ctx, 42)
//	})
//
// # Entry points
//
//   - New makes a Guard: one per process and Prefix. Guard.SelfCheck checks its Redis; Guard.Close ends it.
//   - Get, GetMany and Fetch read by key. NewCache makes a Cache, a typed view of a Guard for one kind of thing.
//   - Guard.Update, Guard.UpdateMany and Cache.Put make a write; Guard.Intend is for transactions that commit
//     elsewhere, and Guard.Invalidate comes after a write.
//   - SetTTL, SetTags and ErrNotFound are for loaders. ClassOf says what an error means to a client.
//   - Observer, Hooks and Guard.Stats are for monitoring, Guard.Inspect and Guard.Bypass for operators.
//
// # Guarantees
//
//   - One load per key in the whole fleet, while Redis keeps the lease.
//   - Never a stale fill, even when it does not: a load stores its value only if nothing was invalidated or stored since
//     it began.
//   - A Get that begins after an Invalidate, InvalidateTags or InvalidateAll returned nil, in any process, never
//     returns a value loaded before it (with Config.Local: see LocalConfig).
//   - Cancelling one caller never fails another. A loaded value reaches everyone who waits for it, even if Redis fails.
//
// # Limits
//
// A program must know these; docs/guarantees.md has all:
//
//   - Callers share decoded values: copy what you want to change. With encoding/json, unexported fields and the types
//     behind an interface are lost.
//   - A loader should begin its own transaction, or read outside any: an older snapshot has the row from before.
//   - If a writer does not call Invalidate, the old value lives until its TTL, or a feed of package cdc, ends it.
//   - Redis replicates asynchronously: a failover can forget an invalidation.
package cacheguard

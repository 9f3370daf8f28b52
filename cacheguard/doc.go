// Package cacheguard is a read-through cache on Redis that loads a missing entry once, however many instances and
// callers ask for it meanwhile, and never stores a value that a write has overtaken.
//
//	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", TTL: time.Minute})
//	...
//	p, err := cacheguard.Get(ctx, guard, "product:42", func(ctx context.Context) (Product, error) {
//		return db.Product(ctx, 42)
//	})
//
// # Guarantees
//
//   - One load per key in the whole fleet, while Redis keeps the lease.
//   - Never a stale fill, even when it does not: a load stores its value only if nothing invalidated the key, and no
//     other load stored a value, since it began.
//   - A Get that begins after an Invalidate returned nil, in any process, never returns a value loaded before it.
//   - Cancelling one caller, the first included, never fails another. A loaded value reaches those who wait for it,
//     whatever happens to Redis.
//
// And their limits. A second load runs beside the first when Redis does not answer within RedisTimeout, and after
// WaitTimeout. A failover to a replica that lags behind can forget an invalidation or a lease, as Redis replication is
// asynchronous. The instances of a Ring may disagree for a while on which shards are up; an invalidation then reaches
// only one of the shards that are in use for a key. A loader that reads from a lagging replica of the database can be
// handed an old row after the write was invalidated, and so can one that reads in a transaction whose snapshot is older than
// the write: the load began after the Invalidate or Update, so what it returns is stored, and served until its TTL. A
// loader should begin a transaction of its own, or read outside of any. A writer that does not call Invalidate is bounded
// by the TTL alone.
//
// With a local tier (Config.Local), an Invalidate reaches other instances by a message, and until it does they may serve
// what they have in memory: see LocalConfig.
//
// Callers that share a read or a load get the same decoded value: values are read-only. Copy what you want to change.
// The callers of a load get what the loader returned, others what the Codec made of it: with encoding/json, unexported
// fields and the types behind an interface are lost on the way.
//
// # Protocol
//
// For each key there are a value (one string, see entry.go) and, while it is being loaded, a lease (a hash, see
// lua/prelude.lua) in the same cluster slot. Every key written has a TTL.
//
// A hit is one GET. Concurrent reads share round trips (an MGET, or a pipeline for each node), see package link; no
// call gets a value that was read before it asked. After some twenty misses in a row a Get does not read first: acquire
// returns the value if there is one.
//
// A miss makes one flight per key and process, which belongs to no single caller (package flight) and asks Redis with
// acquire.lua. In one step, that returns the value if there is one by now; or grants the lease; or says who is loading,
// and registers this process's inbox (package wake) to be told when that is done; or returns a load's failure that is
// still remembered. Each load has a token of 128 random bits, the lease belongs to the token, and acquire by its holder
// is granted again, so a request that was sent twice does no harm. The lease is asked for when a loader may run at once
// (MaxLoads): it must not wait in a queue. Scripts of many keys share requests, and what nobody waits for any more is not sent
// (package link).
//
// The flight with the lease loads. Until its fill is answered, renew.lua extends the lease at a third of LeaseTTL. When the
// loader returns, the callers that began before it did have their values and go; the flight goes on for nobody in particular,
// ahead of all new requests: fill.lua stores the value, removes the lease, and publishes to the inboxes registered in it, with
// the entry in the message when it is small. A Get that comes meanwhile joins the flight, and Close waits for it. A wait for
// another instance ends with the message; with the lease's deadline, when the holder may have died and acquire grants the lease
// to the next; with the caller's context; or with WaitTimeout. While the subscription is down, waiters poll.
//
// What may be stored. Each lease has a generation, the token of the load that created it and the time, which it keeps
// when another load takes it over after the deadline. (The time, because a copy of an acquire can arrive late and
// recreate the lease of a load after Invalidate had removed it.) Whoever finds the generation it acquired knows that
// nothing was stored and nothing invalidated since, as both remove the lease. That is all fill.lua asks for. So a
// load that was slower than its lease may still store; one that was overtaken by Invalidate, by another fill, by
// eviction or a flush may not. The proof is always something that is there, never something missing. The lease
// outlives its deadline for that purpose.
//
// Who may have what was loaded. A call that began before the loader did may have its value in any case. A call that
// began later, and only joined, may have it if the value was stored, because then nothing was invalidated between
// (package flight has the logical clock that tells earlier from later). Otherwise it asks again, and in the end loads by
// itself, without storing.
//
// Who may die, and when: before acquire, nothing has happened. Between acquire and fill, the lease expires, and the
// next flight to ask gets it. After fill, everything has happened. A reply that is lost leaves a lease that is released
// in the background, or a value that is stored all the same. A process that was paused and wakes up after its lease
// ended finds its generation gone if anybody stored meanwhile.
//
// GetMany makes a flight for each missing key, each with a lease and token of its own, around one call of the loader.
//
// While Redis does not answer, it is hardly asked (package health), and loads go on without it: shared by the callers of
// an instance, and at most MaxLoads at a time. Invalidations are still tried, and those that fail are owed: sent again
// until they succeed, and until then this instance does not read their keys.
//
// A local tier (package tier) is asked before Redis. It is filled from reads, and invalidate.lua publishes a numbered
// notice that makes every instance forget the key.
//
// Update takes the key's write lock (package rwlock) and announces itself with begin_update.lua: value and lease are
// removed, and an intent stands, which is renewed as leases are. While it stands acquire.lua grants no lease, and registers
// who asks to be told of the end. end_update.lua removes value and lease once more, and the intent. A writer that dies
// leaves its intent for two times LeaseTTL at most; it then expires, and loads store again.
//
// A load that fails leaves its error's text in the lease for a moment (fail.lua), so that those who wait do not each
// repeat it. A load that was cancelled, because its last caller left, leaves nothing (release.lua).
package cacheguard

// Package cas changes values that live only in Redis, by compare-and-swap: a change is stored only if the value is
// still the one that it was made from. No lock is held, so nobody waits for a process that died.
//
//	store, err := cas.New(rdb, cas.Config{Prefix: "cart", TTL: time.Hour})
//	...
//	cart, err := cas.Update(ctx, store, "user:7", func(old Cart, found bool) (Cart, error) {
//		return old.With(item), nil
//	})
//
// # Entry points
//
// Get reads a value with its version, Swap and Delete change it if it still has that version, and Update reads, changes
// and swaps until it succeeds.
//
// # Guarantees
//
//   - A Swap or Delete is done if the value still has the version that it names, and otherwise changes nothing. Versions
//     are compared, not values: a value that was changed and changed back has another version.
//   - It is done at most once, however often the client sends it. If it returns nil, it was done; if it returns
//     ErrConflict, it was not and never will be. If neither can be known, it returns ErrUncertain.
//   - Update loses nobody else's change, and makes its own at most once.
//
// These have limits. Redis replicates asynchronously, so a failover can forget an acknowledged write. Evicted or flushed
// values are gone, and so is the memory of recent writes: use maxmemory-policy noeviction for values that matter. Values
// expire: see Config.TTL. A value that was created and is gone again leaves no version: if the network delays a copy of
// the creating request for longer than a minute, or than 4096 other writes, the copy can create the value again.
//
// # Protocol
//
// Each key has a value and, for a minute after a write, a list of the tokens of its last 4096 writes, in one cluster slot. The value is
// one string: its version, a byte that says what follows, and the encoded value. So Get is one GET, and a write is one script. The
// version is the token of the write that stored it: 130 random bits.
//
// A write names the version that it replaces, or none to create the value. The script compares, and stores the value and
// the token in one step.
//
// A caller may die, be cancelled or lose a reply at any point:
//
//   - Before the script ran, nothing has happened. After it ran, everything has: there is no state in
//     between.
//   - The reply to a script is lost. The first request is sent exactly once, so an answer to it is the truth. Without an
//     answer it is sent again, marked as a repetition, which go-redis may send more than once. If the token of a repetition
//     is in the value or in the list, the write was done already, even if others have written since. If the version that it
//     replaces is still there, it is done now. Otherwise others were first; but if the list is full, its own token may have
//     dropped out of it, and the result is ErrUncertain.
//   - A copy of a request that arrives after all of this finds that the version it replaces is not there: versions do not
//     come back.
//   - The caller's context ends, or RedisTimeout: the request may still be on its way. The error is ErrUncertain.
//   - Update reads, calls a function, swaps, and begins again after a conflict. It may stop between any two steps. After
//     ErrUncertain it does not begin again: it could make its change twice.
package cas

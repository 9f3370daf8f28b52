// Package chaos has only tests. Processes do all that package cacheguard exports, answer requests through package middleware, lock and count,
// while they are killed and stopped and their Redis restarts, freezes, forgets its scripts, closes connections, refuses writes, runs out of
// memory, evicts, fails over, or moves its slots, and while requests and replies are late, lost and repeated. Each process logs what it saw,
// with times of the machine's clock. The truth is in a separate Redis that nobody disturbs; it numbers all that is read and written. All logs
// together are checked:
//
//   - A Get that began after Invalidate, InvalidateTags, InvalidateAll, Update or Put had returned nil, in any process, returned nothing
//     older; nor, if one of these failed, on the same Guard. Another instance's local tier may be some seconds behind.
//   - Absence ended with its tags. Readers saw the writes of a dead writer, in an Update or in a transaction, once its intent had expired. So was
//     what was written while the cache was turned off.
//   - No version of the program got another's values, and no kind those of another. While Redis kept the leases, each key had one load at a time.
//   - An error had a name of that page, and said whether write had been called, and a transaction read nothing older than what it had written.
//   - Of thousands that one call asked for, each was as new and was loaded as once as a single one, and had its own value or an error.
//   - No call failed for another's sake or Redis', and each ended when its context did. Close returned.
//   - No process that had lost a lock wrote to a store that checks fences: no count is lost.
//   - No change of a value by compare-and-swap is lost, or made twice, where Redis keeps its data.
//
// A failover may forget writes that were acknowledged a moment before: reads from then until TTL is over are excused, and
// counted. Caches made by hand must break each of these promises. Tests compare the operations, settings and promises with those of the
// package and of docs/guarantees.md, so that whoever adds one adds it here. CHAOS=1h sets how long all tests last together.
package chaos

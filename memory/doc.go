// Package memory is the second engine of cacheguard: what its scripts and commands do in Redis, done in this process. New returns a go-redis
// client that never dials. Whatever takes a client takes it: a Guard, the lockers of mutex and rwlock, a Semaphore, Once, a cas.Store, a
// segment.Counter, middleware, the feeds of cdc.
//
//	rdb, err := memory.New(memory.Config{MaxBytes: 64 << 20})
//	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop"})
//
// # What holds
//
// All that the packages promise holds among those that share one client: one load per key, no stale fill, one holder of a lock, fences that
// grow, invalidation of the local tiers. It is the protocol of docs/design/protocol.md, step by step: each script has a function in Go, named
// alike, and a test runs random sequences of all of them on a real Redis and here, and compares replies, messages and what is left.
//
// # What does not
//
// Two clients share nothing, nor do two processes: each loads for itself, writes of one leave what the other has cached until that expires, and
// a lock of one excludes nobody in the other. All is gone when the process ends, fences too. So it is right for one instance, for tests, and as
// what a service does until it is given a Redis; it is wrong wherever two instances write to one source, or something must happen once in all of
// them. There are no replicas: an operation that waits for one (Config.Replicas) fails with ErrNotReplicated.
//
// # Memory and time
//
// MaxBytes bounds what is stored, counted with its keys and what each takes beside. Cached values give way, the least recently used first, and
// nothing else does: leases, epochs, intents, locks, counters and the values of cas stay until they expire or are removed. A value that finds no
// room is not stored, and the writer gets OOM, as Redis says it; what is not a value is refused in the same way once no value is left to give
// way. What ends or shrinks something is never refused.
//
// Keys expire when their time is over; whatever runs next frees what they took. Time is one clock that never goes back: what the scripts do
// about a clock that was set back is not here.
package memory

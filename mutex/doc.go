// Package mutex is an exclusive lock on Redis. It tells its holder when the lock is lost, hands out fencing tokens, and
// wakes only the next waiter.
//
//	locks, err := mutex.New(rdb, mutex.Config{Prefix: "lock", TTL: 10 * time.Second})
//	...
//	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *mutex.Lease) error {
//		return send(ctx, 7, l.Fence())
//	})
//
// # Guarantees
//
//   - One holder at a time, while Redis keeps the lease and clocks run evenly.
//   - A holder learns of the end of its lease in time: its context ends no later than the lease, by its own monotonic
//     clock, whether Redis can be reached or not.
//   - A dead holder keeps the lock for at most its lease, and a dead waiter delays the others by at most its grace,
//     three seconds.
//   - A wait that ends leaves nothing behind. A lost reply makes nobody wait for itself. Unlock never frees
//     somebody else's lock.
//   - Fences grow with every acquisition, however the lock changes hands: see Lease.Fence.
//
// These have limits. Work that goes on after its context has ended may overlap with the next holder's, as a process may be
// paused between checking its lease and writing. Only a fence that the protected resource checks excludes that. Redis
// replicates asynchronously, so a failover can forget a lock that was just granted. Redis judges leases by its wall clock.
// Set forward, it ends leases too early; set back, it ends the leases of dead holders late, by at most their length after
// somebody asks. A Quorum survives the loss of a minority of servers, but not errors of their clocks, nor one that comes back empty
// (see NewQuorum). Where two holders at
// once would be a disaster and nothing can check fences, take a lock of consensus/etcd or one of its siblings.
//
// # Protocol
//
// Each name has a hash and, while processes wait, a queue (see lua/prelude.lua), in one cluster slot. Every key has a TTL.
// The server's TIME, read once in each script, decides who holds what; local clocks only ever end trust.
//
// Each call has an id of 128 random bits. lock.lua gives a free lock to the id, with the next fence, or else puts the id
// into the queue. unlock.lua takes the lock from the id that holds it, gives it to the first waiter that is alive, and
// notifies only that one. So a lock costs one request and an unlock another, also when the lock changes hands between
// processes, however many wait. The queue in Redis is first come, first served; package queue describes how waiting works.
//
// Of the callers of a Fair lock, the first few of each process queue in Redis. The others wait in the process, at the lock's door
// (package queue): leaving it costs no request. Each takes the place in Redis that its time of arrival gives it. For that, the
// process knows the server's time from earlier answers: late by a round trip at most, and never early, so that nobody overtakes a
// caller who was queued before. A caller that could not use a grant in time does not queue.
//
// Unless the lock is Fair, callers of one process queue in the process, and only the first of them has a place in Redis:
// it asks, waits and holds. Unlock names its successor to unlock.lua, which gives the lock to the successor in the same
// request, without a place in the queue. It does so always when no other process waits, and otherwise a few times in a
// row. So the callers of a busy process cost one request each, and no process starves.
//
// The holder's side is package hold: the lease is renewed by the keeper of the process, all leases in one pipeline.
//
// An owner (WithOwner) has its own token instead of the id. The hash lists the ids of its holds; the lock is free when the
// list is empty. Owners do not queue in the process, because they may hold the very lock that the others there wait for.
//
// A caller may die, be paused or be cut off at any point:
//
//   - Before lock.lua ran, nothing has happened. After it ran, without a reply: the call asks again with the same id, and
//     learns that it has the lock, or keeps its place. If the call gives up instead, the id is released in the background until
//     that is known to have happened. If one of its requests has no reply, the lock remembers for ten minutes that the id is
//     gone, and refuses its late requests. A TryLock that was refused gives up, too, if one of its requests has no reply: that
//     may arrive when the lock is free.
//   - In the queue: a waiter asks again every third of its grace. One that does not is skipped when its turn comes. If it
//     dies while the grant is on its way, the grant lasts for its grace.
//   - A waiter that is paused until its grant has ended may queue again and then find the message of the old grant. So
//     each answer has the lock's last fence, and a message counts only if its fence is greater.
//   - A holder: its lease ends, and the waiters ask at that moment, with a little jitter.
//   - Before unlock.lua ran, the holder holds. After it ran, without a reply: go-redis asks again, and the hash remembers who
//     released the lock last. The successor that the unlock named asks with its own id and learns whether it has the lock; if
//     it has left, the lock is released for it.
//   - A process that was paused finds its contexts ended when it wakes up, and its renewals refused.
//
// A Quorum's holder may have a bare majority, as another one had the lock on the other servers when it asked. Whenever a majority has
// extended its lease, it asks the servers that answered without it, so that it can lose one later. That is safe: a server grants only
// what is free there, so the token takes nothing from anybody, and keeps others out. It counts for nothing in the renewal before it,
// which had a majority without it, so it never turns a lost lease into one that is held. In the next renewal it counts as any other:
// the server has the token then, and learns the fence. Unlock gives it back, and a request that arrives after that is refused.
package mutex

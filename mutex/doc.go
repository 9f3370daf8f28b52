// Package mutex is an exclusive lock on Redis that says when it is lost, hands out fencing tokens, and wakes who is next
// instead of everyone.
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
//   - A holder is told that its lease is over no later than it is over: its context ends, measured on its own monotonic
//     clock, whether Redis can be reached or not.
//   - A lock outlives a dead holder by no more than its lease, and a dead waiter delays the others by no more than three
//     seconds, its grace.
//   - A wait that ends, ends without a trace. A reply that is lost makes nobody wait for itself. Unlock never frees
//     somebody else's lock.
//   - Fences grow with every acquisition, however the lock changed hands, see Lease.Fence.
//
// And their limits. Work that goes on after its context has ended may meet the next holder's: nothing but a fence that the
// protected resource checks can exclude that, as a process may be paused between looking at its lease and writing.
// Redis replicates asynchronously, so a failover can forget a lock that was just granted. Redis judges leases by its wall
// clock: set forward, it ends leases too early; set back, it ends those of the dead later, by no more than their
// length after somebody asks. A Quorum survives the loss of a minority of servers, not their clocks. Where two holders at
// once are a disaster and fences cannot be checked, take a lock of consensus/etcd or one of its sisters.
//
// # Protocol
//
// For each name there are a hash and, while processes wait, a queue (see lua/prelude.lua) in one cluster slot. Every key has
// a TTL. The server's TIME, asked once in each script, decides who holds what; local clocks only ever end trust.
//
// Each call has an id of 128 random bits. lock.lua gives a free lock to the id, together with the next fence, and else puts
// the id into the queue. unlock.lua frees the lock if the id holds it, and gives it to the first in the queue that is alive,
// and tells that one alone. So a lock costs one request and an unlock another, and a lock that changes hands between
// processes costs no more, whatever the number of those who wait. How waiting works is described in package
// queue: the queue in Redis is first come, first served.
//
// Of the callers of a Fair lock, the first few of each process queue in Redis. The others wait in the process, at the lock's door
// (package queue): leaving it costs no request. Each takes the place in Redis of when it came. For that the process reckons
// the server's time from the answers it has, to within half a round trip. Whoever could not make use of a grant in time
// does not go in.
//
// Unless the lock is Fair, callers of one process queue in the process, and the first of them has a place in Redis. It has
// its turn: asks, waits, holds. Unlock names its successor to unlock.lua, which then gives the lock to it in the same
// request, without a place in the queue: always when no other process waits, and otherwise a few times in a row. So
// the callers of a busy process cost one request each, and no process starves.
//
// The holder's side is package hold: the lease is renewed by the keeper of the process, all leases in one pipeline.
//
// An owner (WithOwner) has its own token instead of the id. The hash lists the ids of its holds; the lock is free when the
// list is empty. Owners do not queue in the process, as they may hold the very lock that the others there wait for.
//
// Who may die, be paused or be cut off, and when:
//
//   - Before lock.lua ran, nothing has happened. After it ran, without a reply: the call asks again with the same id, which
//     is told that it has the lock, or keeps its place. When the call gives up instead, the id is released in the
//     background, until that is known to have happened. If one of its requests has no reply, the lock remembers for ten minutes
//     that the id is gone, and refuses what still arrives.
//   - In the queue: a waiter asks again every third of its grace. One that does not is passed over when its turn comes. When
//     it dies with the grant on its way, the grant lasts for its grace.
//   - A waiter that is paused until its grant has ended may queue anew and then find the message of that grant. So each
//     answer has the lock's last fence, and a message counts only if its fence is greater.
//   - A holder: the lease ends, and who waits asks at that moment, a little jittered.
//   - Before unlock.lua ran, the holder holds. After it ran, without a reply: go-redis asks again, and the hash remembers who
//     gave the lock up last. The successor that the unlock named asks with its own id and finds that it has the lock, or
//     that it has not; if it has left meanwhile, the lock is given up for it.
//   - A process that was paused finds its contexts ended when it wakes up, and its renewals refused.
package mutex

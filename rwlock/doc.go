// Package rwlock is a read-write lock in Redis: many readers or one writer, across processes, and nobody starves.
//
//	locks, err := rwlock.New(rdb, rwlock.Config{Prefix: "shop"})
//	...
//	err = locks.Do(ctx, "prices", func(ctx context.Context, l *rwlock.Lease) error {
//		return db.SavePrices(ctx, l.Fence(), prices)
//	})
//
// # Guarantees
//
// While Redis keeps its data and its clock does not leap forward:
//
//   - Never a writer together with anybody else, by the leases' own deadlines: a lease's Context ends before its lease
//     in Redis does, also when Redis cannot be reached.
//   - Phase-fair, as sync.RWMutex: writers take turns in the order in which they asked; a reader waits for at most one
//     writer, who may hold already or be queued (behind 64 impatient readers of its process, an impatient one waits
//     for at most one from when it is queued; see below); a writer for the writers ahead and for the readers that were admitted
//     before it and between them.
//   - A crashed holder delays the others by at most its lease (TTL); a crashed waiter by at most its grace (TTL, and 3 s at most).
//   - Each writer gets a Fence, larger than all before it. A reader's Fence is that of the last writer.
//
// And their limits. A failover to a replica that lags behind can forget a holder or a waiter, as Redis replication is
// asynchronous; so can eviction and FLUSHALL. A leap of the server's clock ends leases early (a step back does not end
// them late: see below). A holder that is paused between looking at its Context and acting acts too late. What must
// survive these checks the fence where it writes: refuse a fence smaller than the largest seen.
//
// The lock is not re-entrant: who holds it and asks again waits for itself, a reader too when a writer is queued.
//
// # Protocol
//
// Every holder has a token of 128 random bits and a lease of its own. A lock is a few keys in one cluster slot
// (lua/prelude.lua describes them): the writer with its deadline and the last fence, the readers by their deadlines,
// the queued writers by when they came, the queued readers, and how long each of the queued is believed to be alive.
// Leases are scores and fields, judged by the server's clock, which each script reads once. A key's own TTL is for
// what is forgotten by everybody, and only ever extended.
//
// Every script first ends the leases that have expired and takes the waiters out that are dead, and hands the lock on,
// before or after it does what it is for. Handing on is one rule:
//
//  1. A writer holds: nobody.
//  2. A writer has just left (it released, downgraded, expired, was revoked), or no writer is queued: all queued readers.
//  3. Then, when nobody holds: the first writer of the queue.
//
// So phases alternate while both kinds wait, and a free lock has no queue. A request gets the lock at once if nobody
// it must wait for holds or is queued, and its place in the queue in the same script otherwise. A writer that finds the lock
// free, and one that leaves while nobody waits, are spared all this: two short scripts before the others see that there is nothing to
// end and nobody to hand on to (lua/acquire_free.lua, lua/release_lone.lua).
//
// A lock handed on is a grant: a lease as long as the waiter's grace, until its holder has confirmed it by renewing.
// The script that grants also publishes to the inboxes (package wake) that the granted have registered, once for each
// process; a writer's message names its token and ticket, a readers' message the ticket up to which all are granted.
// A waiter that was queued when its request of local time t ran holds from the grant until t + grace at least, as
// the grant came later. That is how long it trusts the message: it may begin at once, half a round trip after the
// release, and renews meanwhile. A message that is older than that is only a reason to ask. (One of an older place in
// the queue than its own is not for it: hence the ticket, which a heartbeat must name too.) Redis takes a waiter out of
// the queue a little before its context ends, when a grant would reach it too late; from then on it takes no message for its
// grant.
//
// Of the writers of a process, only the first few queue in Redis. The others wait in the process, at the lock's door (package
// queue): leaving it costs no request. Each takes the place in the queue of when it came: its score is its ticket less the time
// it had waited before, which the process reckons by the server's clock from the answers it has. Whoever could not make
// use of a grant in time does not go in. Impatient readers, which leave within a third of their grace, a second at
// most, have a wider door, which is open as long as nobody has to queue and when one of them is granted the lock. All other
// readers queue at once.
//
// While it waits, a waiter sends a heartbeat each third of its grace, which goes with the renewals of the process in
// one pipeline (package lease). It says whether there is a reason to ask again: the grant whose message was lost, a
// queue that forgot the waiter. It asks again also when the leases of the holders would end, so a crashed holder is
// replaced as its lease ends, and when the subscription was interrupted. When one of the holders leaves and the leases of
// the others end before a heartbeat could find that out, the first writer of the queue is told to ask. While there is none, waiters poll. Asking is
// the same script again, with the same token.
//
// What may crash, and when. A holder: its lease ends. A waiter: it is dead its grace after its last heartbeat, and what
// is granted to it in between ends as long after that. A holder that was paused finds its Context ended, since that
// is judged by its own monotonic clock from before the last successful request was sent; a waiter that was paused has lost its place,
// or finds a grant that it cannot trust, and asks. A waiter that gives up releases its token,
// which takes it out of the queue or gives back what was granted meanwhile; that request waits for the one under way
// and for no caller's context. Which replies may be lost: all. Each script does nothing when its token has already
// what it asks for, and says the same again. Of a token that gives up while one of its requests has no reply, the lock
// remembers for ten minutes that it is gone, and refuses what still arrives.
//
// A server's clock that is set back would make leases last longer by as much. So the lock remembers the longest lease
// anybody asked for, and cuts what would last longer than that from now on. No living holder loses by it.
package rwlock

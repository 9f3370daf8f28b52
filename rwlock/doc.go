// Package rwlock is a read-write lock in Redis: many readers or one writer, across processes, without starvation.
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
//   - Phase-fair, as sync.RWMutex: writers take turns in the order in which they asked; a reader waits for at most one writer,
//     which may already hold the lock or be queued (an impatient reader behind 64 others of its process waits for at most one
//     writer from when it is queued; see below). A writer waits for the writers ahead, and for the readers that were admitted
//     before it and between them.
//   - A crashed holder delays the others by at most its lease (TTL); a crashed waiter by at most its grace (the shorter of TTL and
//     3 s).
//   - Each writer gets a Fence, larger than all before it. A reader gets the Fence of the last writer.
//
// These have limits. Redis replication is asynchronous, so a failover to a lagging replica can forget a holder or a
// waiter; so can eviction and FLUSHALL. A leap forward of the server's clock ends leases early (a step back does not
// end them late: see below). A holder that is paused between checking its Context and acting acts too late. Data that
// must survive this needs the fence: refuse writes with a fence smaller than the largest seen.
//
// The lock is not re-entrant: a holder that asks again waits for itself. That includes a reader when a writer is
// queued.
//
// # Protocol
//
// Every holder has a token of 128 random bits and a lease of its own. A lock is a few keys in one cluster slot
// (internal/lock/rw/lua/prelude.lua describes them): the writer with its deadline and the last fence, the readers by deadline, the
// queued writers by arrival, the queued readers, and how long each queued caller is believed to be alive. Leases are
// scores and fields, judged by the server's clock, which each script reads once. The TTL of a key itself only cleans
// up what everybody has forgotten, and is only ever extended.
//
// Every script first ends expired leases and removes dead waiters. Before or after its own task, it hands the lock on,
// by one rule:
//
//  1. If a writer holds the lock, nobody gets it.
//  2. If a writer has just left (released, downgraded, expired or was revoked), or no writer is queued, all queued
//     readers get it.
//  3. If nobody holds it then, the first writer of the queue gets it.
//
// So phases alternate while both kinds wait, and a free lock has no queue. A request gets the lock at once if nobody that it must
// wait for holds it or is queued; otherwise the same script gives it a place in the queue. A writer that finds the lock free, and one
// that leaves while nobody waits, skip all this: two short scripts that run first see that there is nothing to end and nobody to hand
// on to (acquire_free.lua, release_lone.lua).
//
// A lock handed on is a grant: a lease as long as the waiter's grace, until its holder confirms it by renewing. The granting
// script also publishes to the inboxes (package wake) that the new holders have registered, once per process. A writer's
// message names its token and ticket, a readers' message the ticket up to which all are granted. If a waiter sent its last
// request at local time t and was queued by it, a later grant lasts until at least t + grace. For that long the waiter
// trusts the message: it begins at once, half a round trip after the release, and renews in the meantime. An older message
// is only a reason to ask. (A message about an earlier place in the queue is not for it: hence the ticket, which a heartbeat
// must name too.) Redis removes a waiter from the queue a little before its context ends, when a grant would reach it too
// late; from then on the waiter ignores messages.
//
// Only the first few writers of a process queue in Redis. The others wait in the process, at the lock's door (package queue):
// leaving it costs no request. Each takes the place in the queue that its time of arrival gives it: its score is its ticket
// minus the time it had already waited, which the process computes by the server's clock as known from earlier answers. A
// caller that could not use a grant in time does not queue. Impatient readers, which leave within a third of their grace (at
// most a second), have a wider door. It is open as long as nobody has to queue, and when one of them gets the lock. All other
// readers queue at once.
//
// A waiter sends a heartbeat every third of its grace, in one pipeline with the renewals of the process (package lease). The answer says whether
// there is a reason to ask again: a grant whose message was lost, or a queue that forgot the waiter. The waiter also asks again when the leases of
// the holders would end, so a crashed holder is replaced as its lease ends, and when the subscription was interrupted. If a holder leaves, and the
// leases of the others end before a heartbeat could notice, a message tells the first writer of the queue to ask. Without a subscription, waiters
// poll. Asking is the same script again, with the same token.
//
// Anything may crash at any time, and any reply may be lost:
//
//   - A holder crashes: its lease ends.
//   - A waiter crashes: it counts as dead when its grace has passed since its last heartbeat. A lock that is granted to it
//     before that is held for its grace.
//   - A holder is paused: it finds its Context ended, because its own monotonic clock decides that, counted from before the
//     last successful request was sent.
//   - A waiter is paused: it has lost its place, or finds a grant that it cannot trust, and asks again.
//   - A waiter gives up: it releases its token, which removes it from the queue or returns a lock granted in the meantime.
//     That request waits for the one under way, and for no caller's context.
//   - A reply is lost: if its token already has what it asks for, a script does nothing and gives the same answer again. If a
//     token gives up while one of its requests has no reply, the lock remembers for ten minutes that the token is gone, and
//     refuses its late requests.
//
// If the server's clock is set back, leases would last longer by as much. So the lock remembers the longest lease
// that anybody asked for, and cuts any lease that would last longer than that from now. No living holder loses by it.
package rwlock

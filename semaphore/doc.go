// Package semaphore is a counting semaphore in Redis: at most N holders at once, across processes, first come, first served.
//
//	reports, err := semaphore.New(rdb, semaphore.Config{Prefix: "shop", Permits: 3})
//	...
//	err = reports.Do(ctx, "reports", func(ctx context.Context, _ *semaphore.Lease) error {
//		return db.WriteReport(ctx) // no more than three at a time, on all instances together
//	})
//
// # Guarantees
//
// While Redis keeps its data and its clock does not leap forward:
//
//   - Never more than Permits hold a semaphore, by the leases' own deadlines: a lease's Context ends before its lease
//     in Redis does, also when Redis cannot be reached. Permits that a process hands out by itself meanwhile (Config.WithoutRedis)
//     come on top.
//   - First come, first served: a free permit goes to the caller that has waited longest, in any process, and TryLock does not
//     overtake waiters. (A process knows the order of its own callers, and estimates by the server's clock when they came.)
//   - A crashed holder keeps its permit until its lease ends (TTL); a crashed waiter holds up a permit for at most its grace (the
//     shorter of TTL and 3 s). The others notice at most a third of the grace later.
//   - A waiter that gives up leaves nothing behind, and a crowd of them costs Redis no more than the few that queue there.
//
// These have limits. Redis replication is asynchronous, so a failover to a lagging replica can forget holders; so can eviction and
// FLUSHALL. Then as many others get permits, until the forgotten holders notice with their next renewal. A leap forward of the
// server's clock ends leases early (a step back does not end them late). A holder that is paused between checking its Context and
// acting acts too late, and there is no fence to refuse it: of several holders, none is the last. A semaphore limits load. Where one
// holder too many would be a disaster, take package mutex and its fence, with one name for each unit.
//
// A caller that has a permit and asks for another waits like everyone else: two callers that do so with the last two permits wait for
// each other for ever.
//
// # Changing the number of permits
//
// The number is not kept in Redis. Each request names its own Config.Permits, and gets a permit when fewer than that are held. So while
// instances with 10 and with 5 run side by side, there are never more than 10 holders. A request with 5 is granted when fewer than 5
// hold. Nobody overtakes it in the queue, so while it is the first, the others wait behind it: it does not starve, and the smaller
// number applies once such an instance has to wait. Permits that are held are not taken away.
//
// # Protocol
//
// The protocol is the one of package rwlock's readers, with another rule for whose turn it is; the scripts share the prelude of package
// queue. Every holder has a token of 128 random bits and a lease of its own. A semaphore is a few keys in one cluster slot
// (lua/prelude.lua describes them): the holders by deadline, the queued callers by arrival, and how long each queued caller is
// believed to be alive. Leases are scores, judged by the server's clock, which each script reads once. The TTL of a key itself only
// cleans up what everybody has forgotten, and is only ever extended.
//
// Every script first ends expired leases, removes dead waiters, and hands on: while the first in the queue knows of more permits than are
// held, it gets one. A request gets a permit at once if there is one and nobody is queued; otherwise the same script gives it a place in
// the queue.
//
// A permit handed on is a grant: a lease as long as the waiter's grace, until its holder confirms it by renewing. The granting script
// also publishes to the waiter's inbox (package wake), with its token and ticket. If a waiter sent its last request at local time t
// and was queued by it, a later grant lasts until at least t + grace. For that long the waiter trusts the message: it begins at once,
// half a round trip after the release, and renews in the meantime. An older message is only a reason to ask.
//
// Only the first few callers of a process queue in Redis: as many as there are permits, plus four (64 at most). The others wait in the
// process, at the semaphore's door (package queue): leaving it costs no request. Each takes the place in the queue that its time of
// arrival gives it: its score is its ticket minus the time it had already waited, which the process computes by the server's clock as
// known from earlier answers. Redis removes a waiter from the queue a little before its context ends, when a grant would reach it too
// late.
//
// A waiter sends a heartbeat every third of its grace, in one pipeline with the renewals of the process (package lease). The
// answer says whether there is a reason to ask again: a grant whose message was lost, or a queue that forgot the waiter. The
// first in the queue also asks when the first of the leases would end, so a crashed holder is replaced as its lease ends. Without
// a subscription, waiters poll. Asking is the same script again, with the same token.
//
// Any reply may be lost. If its token already has what it asks for, a script does nothing and gives the same answer again. A waiter that gives
// up releases its token, which removes it from the queue or returns a permit granted in the meantime; that request waits for no caller's
// context. If one of the token's requests has no reply by then, the semaphore remembers for ten minutes that the token is gone, and refuses
// its late requests. Revoke takes a growing number, a fence. If a holder finds its permit gone, it was revoked if its grant is older than that
// fence, and has lost its lease otherwise.
//
// If the server's clock is set back, leases would last longer by as much. So the semaphore remembers the longest lease
// that anybody asked for, and cuts any lease that would last longer than that from now. No living holder loses by it.
package semaphore

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
//     in Redis does, also when Redis cannot be reached.
//   - First come, first served: a free permit goes to the one that has waited longest, in whichever process, and TryLock does not
//     go past those that wait. (A process knows the order of its own callers, and reckons when they came by the server's clock.)
//   - A crashed holder keeps its permit from the others until its lease ends (TTL); a crashed waiter holds a permit up for at most its
//     grace (TTL, and 3 s at most). Either is noticed at most a third of the grace later.
//   - A waiter that gives up leaves nothing behind, and a crowd of them costs Redis no more than the few that queue there.
//
// And their limits. A failover to a replica that lags behind can forget holders, as Redis replication is asynchronous; so can eviction
// and FLUSHALL. Then as many again get permits, until the forgotten ones notice with their next renewal. A leap of the server's clock
// ends leases early (a step back does not end them late). A holder that is paused between looking at its Context and acting acts too
// late, and there is no fence to refuse it: of several holders, no one is the last. A semaphore limits load. Where one too many would
// be a disaster, take package mutex and its fence, one name for each unit.
//
// A caller that has a permit and asks for another waits for one like others: two that do so with the last two permits wait for each other
// for ever.
//
// # Changing the number of permits
//
// The number is not kept in Redis. Each request names its own Config.Permits, and gets a permit when fewer than that are held. So
// while instances with 10 and with 5 run beside each other, there are never more than 10 holders. One that asks with 5 is granted
// when fewer than 5 hold. Nobody passes it in the queue, so as long as it is the first the others wait with it: it does not starve, and
// the smaller number holds from when such an instance has to wait. Permits that are held are not taken away.
//
// # Protocol
//
// It is that of package rwlock's readers, with another rule for who is next; their scripts share the prelude of package queue. Every
// holder has a token of 128 random bits and a lease of its own. A semaphore is a few keys in one cluster slot (lua/prelude.lua
// describes them): the holders by their deadlines, the queued by when they came, and how long each of the queued is believed to be
// alive. Leases are scores, judged by the server's clock, which each script reads once. A key's own TTL is for what is forgotten by
// everybody, and only ever extended.
//
// Every script first ends the leases that have expired, takes the waiters out that are dead, and hands on: while the first of the queue
// knows of more permits than are held, it gets one. A request gets a permit at once if there is one and nobody is queued, and its place in
// the queue in the same script otherwise.
//
// A permit handed on is a grant: a lease as long as the waiter's grace, until its holder has confirmed it by renewing.
// The script that grants also publishes to the waiter's inbox (package wake), with its token and ticket. A waiter that was queued when
// its request of local time t ran holds from the grant until t + grace at least, as the grant came later. That is how long it trusts
// the message: it may begin at once, half a round trip after the release, and renews meanwhile. A message that is older than that
// is only a reason to ask.
//
// Of the callers of a process, only the first few queue in Redis: as many as there are permits, and four (64 at most). The others wait
// in the process, at the semaphore's door (package queue): leaving it costs no request. Each takes the place in the queue of when it came:
// its score is its ticket less the time it had waited before, which the process reckons by the server's clock from the answers it has.
// Redis takes a waiter out of the queue a little before its context ends, when a grant would reach it too late.
//
// While it waits, a waiter sends a heartbeat each third of its grace, which goes with the renewals of the process in
// one pipeline (package lease). It says whether there is a reason to ask again: the grant whose message was lost, a
// queue that forgot the waiter. The first of the queue asks also when the first of the leases would end, so a crashed holder is
// replaced as its lease ends. While there is no subscription, waiters poll. Asking is the same script again, with the same token.
//
// Which replies may be lost: all. Each script does nothing when its token has already what it asks for, and says the same again. A waiter
// that gives up releases its token, which takes it out of the queue or gives back what was granted meanwhile; that request waits
// for no caller's context. Of a token that gives up while one of its requests has no reply, the semaphore remembers for ten minutes that it is
// gone, and refuses what still arrives. Revoke takes a number that grows, a fence: a holder without a permit that was granted before it
// was revoked, and another one has lost its lease.
//
// A server's clock that is set back would make leases last longer by as much. So the semaphore remembers the longest lease
// anybody asked for, and cuts what would last longer than that from now on. No living holder loses by it.
package semaphore

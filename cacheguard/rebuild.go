package cacheguard

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/wake"
)

// run asks for the value or the lease until it has an answer. The watch begins before the first request, so that no
// wake-up is missed. A transaction has only its own loads.
func (r *rebuild) run(ctx context.Context) (a answer) {
	g := r.guard
	if r.job.scope.isTransactions() {
		return r.loadAlone(ctx)
	}
	r.identify(ctx)
	r.waiters = flight.WaitersOf(ctx)
	defer r.finishWait(&a)
	waiter := g.inbox.Watch(protocol.LeaseKey(r.job.valueKey))
	defer waiter.Stop()
	if r.job.policy.slot.version != 0 { // the end of an update is published under the lease without a version
		defer waiter.Also(protocol.LeaseKey(protocol.WithoutVersion(r.job.valueKey))).Stop()
	}
	if g.cfg.WaitTimeout > 0 {
		r.patience = time.Now().Add(g.cfg.WaitTimeout)
	}
	g.inbox.Start()
	for polls := 0; r.askedAgain <= maxAsks; polls++ {
		if a, done := r.attempt(ctx, waiter, polls); done {
			return a
		}
	}
	return r.loadAlone(ctx)
}

// loadAlone ends the wait for others.
func (r *rebuild) loadAlone(ctx context.Context) answer {
	r.finishWait(nil)
	return r.guard.loadDirectly(ctx, r.job, Loaded)
}

// attempt asks once, and does what the reply says. Not done: ask again. Without a slot it asks only for the value, because
// a lease must not wait in a queue.
func (r *rebuild) attempt(ctx context.Context, waiter *wake.Waiter, polls int) (a answer, done bool) {
	g := r.guard
	if r.slot.IsNone() {
		r.slot = g.loaders.limits.Try(ctx, g.loaders.need(r.job))
	}
	request := r.request()
	request.Inbox = g.inbox.Address()
	runtime.Gosched() // callers that are about to join may do so before the tick, and be covered
	before := g.clock.Tick()
	if r.epochs = nil; polls > 0 { // there may be a value
		r.asked(ctx)
	}
	if r.afterBypass && g.invalidations.Has(r.job.key) { // after the tick: no call that began later gets this answer
		r.returnSlot()
		return g.loadDirectly(ctx, r.job, Bypassed), true
	}
	got, err := r.acquire(ctx, request)
	if err == nil && got.Status == protocol.Granted {
		r.finishWait(nil)
		return r.lead(ctx, got), true // the slot is the loader's now
	}
	r.returnSlot()
	switch {
	case err != nil && ctx.Err() != nil: // every caller has left
		return answer{err: closedOr(context.Cause(ctx))}, true
	case err != nil:
		return r.unreachable(ctx, err), true
	case got.Status == protocol.HasValue:
		g.expected.Found(true)
		how := Hit
		if polls > 0 {
			how = Shared
		}
		return r.use(ctx, got.Value, how, before)
	case got.Status == protocol.Failed:
		r.origin = got.Origin()
		return answer{err: r.failure(got), outcome: Shared, origin: r.origin}, true
	case got.Status == protocol.Free:
		if r.slot, err = g.loaders.takeSlot(ctx, r.job); errors.Is(err, errNoSpareSlot) {
			return answer{}, true // nobody waits any more; callers that come now ask again
		}
		r.waited = true
		return answer{err: err}, err != nil
	}
	r.job.skip()
	r.asked(ctx) // for the value that the holder sends
	r.beginWait(ctx, got)
	waiter.Waiting()
	return r.await(ctx, waiter, got, wait{polls: polls, before: before})
}

// confirm asks whether an entry is valid. If it is not, it will be overwritten. Epochs that were read before the entry may be too old to
// know one that its load made.
func (r *rebuild) confirm(ctx context.Context, raw []byte, stamp protocol.Stamp) (a answer, done, valid bool) {
	early := r.epochs != nil
	holds, redisErr, err := r.asked(ctx).Check(ctx, stamp)
	if early && !holds && err == nil {
		r.epochs = nil
		holds, redisErr, err = r.asked(ctx).Check(ctx, stamp)
	}
	switch {
	case err != nil:
		return answer{err: closedOr(context.Cause(ctx))}, true, false
	case redisErr != nil:
		return r.unreachable(ctx, redisErr), true, false
	case !holds:
		r.unfit, r.aged = raw, false
		r.askedAgain++
		r.job.forgetOld()
		return answer{}, false, false
	}
	return answer{}, false, true
}

// use makes the answer of an entry. One that cannot be used will be overwritten.
func (r *rebuild) use(ctx context.Context, raw []byte, how Outcome, before uint64) (answer, bool) {
	e, value, err := r.job.decode(&r.guard.cfg, raw)
	switch {
	case err != nil && e.Kind == 0:
		r.guard.tell(ctx, report.Damaged, r.job.key, err)
	case err != nil && r.guard.undecodable(r.job.key, r.job.policy, e, err) == alienEntry:
		return r.guard.loadDirectly(ctx, r.job, Loaded), true
	}
	age := fresh
	if err == nil && how != Shared {
		age = r.guard.freshness(r.job.key, r.job.policy, e)
	}
	if err == nil && age != expired {
		if a, done, valid := r.confirm(ctx, raw, e.Stamp); !valid {
			return a, done
		}
	}
	switch {
	case err != nil || age == expired:
		r.unfit, r.aged = r.guard.cfg.packing().Unfit(raw), err == nil
		r.job.forgetOld() // another value has taken its place
		return answer{}, false
	case age != fresh:
		return answer{}, true // good for nobody: a call that reads such a value replaces it, too
	}
	if e.Kind == protocol.Absent {
		return answer{err: ErrNotFound, absent: true, outcome: Negative, before: before, origin: r.origin}, true
	}
	return answer{value: value, outcome: how, before: before, origin: r.origin}, true
}

// wait is how a flight waits for the holder of the lease.
type wait struct {
	polls  int    // how often it asked before
	before uint64 // the tick before it asked: a value that is stored later may answer any call that began before it
}

// await waits until the holder is done, or may be dead. Not done: ask again.
func (r *rebuild) await(ctx context.Context, waiter *wake.Waiter, got protocol.Acquired, w wait) (a answer, done bool) {
	limit := wake.Patience(got.Left, got.Registered, w.polls)
	if !r.patience.IsZero() {
		limit = min(limit, time.Until(r.patience))
	}
	if due := r.due(); due > 0 && w.polls == 0 {
		limit = min(limit, due)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case msg := <-waiter.C:
		return r.wakeUp(ctx, msg, got.Generation, w.before)
	case <-timer.C:
		if r.impatient() {
			return r.loadAlone(ctx), true
		}
		return answer{}, false
	case <-r.breaker.Opened():
		return r.unreachable(ctx, breaker.ErrOpen), true // the message would not come either
	case <-ctx.Done():
		return answer{err: closedOr(context.Cause(ctx))}, true
	}
}

// due is after how long the message should have come, by what loads of the kind take: then it is late, or they take longer today. 0: nobody knows,
// or wants to.
func (r *rebuild) due() time.Duration {
	took := r.job.policy.cost.Average()
	if late := r.guard.lateAfter(r.breaker); took > 0 && late > 0 && r.guard.cfg.HedgeAfter != off {
		return 2*took + late
	}
	return 0
}

// impatient reports whether WaitTimeout is over.
func (r *rebuild) impatient() bool { return !r.patience.IsZero() && !time.Now().Before(r.patience) }

// wakeUp does what a message says. A message is about the end of one generation of the lease. If the flight registered in
// another one, the message proves nothing, and the flight asks again.
func (r *rebuild) wakeUp(ctx context.Context, msg wake.Message, generation string, before uint64) (answer, bool) {
	what, rest, ok := protocol.ParsePush(msg.Body, generation)
	if msg.AskAgain || !ok {
		return answer{}, false
	}
	switch what {
	case protocol.PushedValue:
		return r.use(ctx, []byte(rest), Shared, before)
	case protocol.PushedFailure:
		return answer{err: r.job.policy.loadError(r.job.key, rest), outcome: Shared, origin: r.origin}, true
	case protocol.PushedUnstored:
		return r.loadAlone(ctx), true
	case protocol.PushedAskAgain:
		r.askedAgain++
	}
	return answer{}, false
}

// beginWait begins the task of waiting for another instance, unless that has begun.
func (r *rebuild) beginWait(ctx context.Context, got protocol.Acquired) {
	hooks := &r.guard.cfg.Hooks
	if hooks.Begin == nil && hooks.Origin == nil {
		return
	}
	r.origin = got.Origin()
	if r.endWait == nil {
		_, r.endWait = hooks.begin(ctx, TaskWait, r.job.key)
	}
}

// finishWait ends that task, if there is one: with the answer, or because the flight loads by itself (nil).
func (r *rebuild) finishWait(a *answer) {
	if r.endWait == nil {
		return
	}
	end := End{Origin: r.origin}
	if a != nil {
		end.Outcome, end.Err = a.outcome, a.err
	}
	r.endWait(end)
	r.endWait = nil
}

// unreachable answers when Redis could not be asked for the lease. The reply may be all that was lost.
func (r *rebuild) unreachable(ctx context.Context, err error) answer {
	r.finishWait(nil)
	r.recall(err)
	reason := r.guard.redisError("acquire", r.job.key, err)
	if r.guard.cfg.FailClosed || r.job.spare {
		return answer{err: reason}
	}
	if r.afterBypass {
		return r.guard.loadDirectly(ctx, r.job, Bypassed)
	}
	return r.guard.loadBypassed(ctx, r.job, r.publish)
}

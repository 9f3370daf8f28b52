package cacheguard

import (
	"cmp"
	"context"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/wake"
)

// await waits until the holder is done, or may be dead. Not done: ask again. A value that is stored later may answer
// any call that began before the tick before the request.
func (r *rebuild) await(
	ctx context.Context, waiter *wake.Waiter, got protocol.Acquired, polls int, before uint64,
) (a answer, done bool) {
	limit := r.trusts(got, polls)
	if !r.patience.IsZero() {
		limit = min(limit, time.Until(r.patience))
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case msg := <-waiter.C:
		return r.wakeUp(ctx, msg, got.Generation, before)
	case <-timer.C:
		if r.impatient() {
			return r.loadAlone(ctx), true
		}
		return answer{}, false
	case <-r.breaker.Opened():
		return r.unreachable(ctx, r.breaker.Refusal()), true // the message would not come either
	case <-ctx.Done():
		return abandoned(ctx), true
	}
}

// trusts is for how long to wait for a message. It may have been lost, or its sender may not publish: after the time
// that loads of the kind take, twice, and that Redis may take, it is late, and the flight asks again; then after twice
// as long each time. Where none is known, it guesses.
func (r *rebuild) trusts(got protocol.Acquired, polls int) time.Duration {
	g, late, took := r.guard, r.guard.cfg.RedisTimeout, r.load.policy.kind.cost.Average()
	if after := g.lateAfter(r.breaker); took > 0 && after > 0 {
		late = after // else nobody knows
	}
	patience, doublings := wake.Patience(got.Left, got.Registered, polls), min(polls, 10)
	if after := 2*cmp.Or(took, g.cfg.RedisTimeout) + late; after < patience>>doublings { // the other way round, the longest would overflow
		return after << doublings
	}
	return patience
}

// impatient reports whether WaitTimeout is over.
func (r *rebuild) impatient() bool { return !r.patience.IsZero() && !time.Now().Before(r.patience) }

// wakeUp does what a message says. A message is about the end of one generation of the lease. If the flight registered
// in another one, the message proves nothing, and the flight asks again.
func (r *rebuild) wakeUp(ctx context.Context, msg wake.Message, generation string, before uint64) (answer, bool) {
	what, rest, ok := protocol.ParsePush(msg.Body, generation)
	if msg.AskAgain || !ok {
		return answer{}, false
	}
	switch what {
	case protocol.PushedValue, protocol.PushedKept:
		if what == protocol.PushedValue || r.after == "" || r.waiters.Entered() == r.joined {
			return r.use(ctx, []byte(rest), Shared, before)
		}
		r.seenBefore = ^uint64(0) // it asks again, for those who came since it asked: they find nothing stored
	case protocol.PushedFailure:
		return r.failedElsewhere(r.load.policy.loadError(r.load.key, rest), rest), true
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
		_, r.endWait = hooks.begin(ctx, TaskWait, r.load.key)
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

package cacheguard

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/wake"
)

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
		return r.unreachable(ctx, health.ErrOpen), true // the message would not come either
	case <-ctx.Done():
		return answer{err: closedOr(context.Cause(ctx))}, true
	}
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

// identify makes the origin of the load, if it has one, part of the token for its lease, so that an instance that finds the lease
// knows whose load it is.
func (r *rebuild) identify(ctx context.Context) {
	if origin := r.guard.cfg.Hooks.origin(ctx); origin != "" {
		r.token = protocol.NewToken(origin)
	}
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

// recall gives back a lease that may have been granted without a reply.
func (r *rebuild) recall(err error) {
	if !errors.Is(err, health.ErrOpen) {
		r.guard.life.Go(r.giveUp) // nobody waits for it; stop: RedisTimeout and the client's time-outs; joined by Close
	}
}

// tooLate gives back a lease that may have been granted after its flight stopped waiting for the reply.
func (r *rebuild) tooLate(cmd *redis.Cmd, err error) {
	if err == nil {
		got, unclear := protocol.ParseAcquired(cmd)
		if unclear == nil && got.Status != protocol.Granted {
			return
		}
	}
	_ = r.guard.life.Try(r.giveUp) // stop: RedisTimeout. If the Guard is closed, the lease expires.
}

// giveUp releases the lease, also when the flight's context has ended.
func (r *rebuild) giveUp() {
	// If this fails too, the lease expires.
	_, _ = r.guard.link.Do(context.Background(), r.job.valueKey, &link.Call{Script: r.guard.keys.Release(r.job.valueKey, r.token), Rank: link.EndsWork})
}

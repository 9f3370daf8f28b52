package cacheguard

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/health"
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

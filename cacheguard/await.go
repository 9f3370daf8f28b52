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
	registered bool   // the holder will publish to our inbox
	polls      int    // how often it asked before
	before     uint64 // the tick before it asked: what is stored later is good for calls that began before that
}

// await waits until the holder is done, or may be dead. Not done: ask again.
func (m *missed) await(ctx context.Context, waiter *wake.Waiter, got protocol.Acquired, w wait) (a answer, done bool) {
	timer := time.NewTimer(wake.Patience(got.Left, w.registered, w.polls))
	defer timer.Stop()
	select {
	case msg := <-waiter.C:
		return m.wakeUp(ctx, msg, got.Generation, w.before)
	case <-timer.C:
		return answer{}, false
	case <-m.breaker.Opened():
		return m.unreachable(ctx, health.ErrOpen), true // the message would not come either
	case <-m.patient:
		return m.loadDirectly(ctx, m.job, Loaded), true
	case <-ctx.Done():
		return answer{err: closedOr(context.Cause(ctx))}, true
	}
}

// wakeUp does what a pushed message says. A message says what became of one generation of the lease; of another one
// than this flight registered in, it proves nothing, and the flight asks again.
func (m *missed) wakeUp(ctx context.Context, msg wake.Message, generation string, before uint64) (answer, bool) {
	what, rest, ok := protocol.ParsePush(msg.Body, generation)
	if msg.AskAgain || !ok {
		return answer{}, false
	}
	switch what {
	case protocol.PushedValue:
		return m.use([]byte(rest), Shared, before)
	case protocol.PushedFailure:
		return answer{err: &LoadError{Key: m.key, Message: rest}, outcome: Shared}, true
	case protocol.PushedPass:
		return m.loadDirectly(ctx, m.job, Loaded), true
	case protocol.PushedGone:
		m.woken++
	}
	return answer{}, false
}

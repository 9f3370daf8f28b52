package cacheguard

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/wake"
)

// wait is how a flight waits for the holder of the lease.
type wait struct {
	registered bool   // the holder will publish to our inbox
	polls      int    // how often it asked before
	before     uint64 // the tick before it asked: what is stored later is good for calls that began before that
}

// await waits until the holder is done, or may be dead. Not done: ask again.
func (m *missed) await(ctx context.Context, waiter *wake.Waiter, got acquired, w wait) (a answer, done bool) {
	timer := time.NewTimer(wake.Patience(got.left, w.registered, w.polls))
	defer timer.Stop()
	select {
	case msg := <-waiter.C:
		return m.wakeUp(ctx, msg, got.generation, w.before)
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
	what, rest, ok := parsePush(msg, generation)
	if !ok {
		return answer{}, false
	}
	switch what {
	case pushedValue:
		return m.use([]byte(rest), Shared, before)
	case pushedFailure:
		return answer{err: &LoadError{Key: m.key, Message: rest}, outcome: Shared}, true
	case pushedPass:
		return m.loadDirectly(ctx, m.job, Loaded), true
	case pushedGone:
		m.woken++
	}
	return answer{}, false
}

// push is what a script says of the lease it ended.
type push byte

const (
	pushedValue   push = 'v' // a value was loaded; it follows
	pushedFailure push = 'f' // the load failed; the error's text follows
	pushedPass    push = 'p' // a value was loaded that cannot be stored: everyone has to load it
	pushedGone    push = 'g' // ask again
)

// parsePush splits a message. Not ok: it does not speak of this generation.
func parsePush(msg wake.Message, generation string) (what push, rest string, ok bool) {
	body := msg.Body
	if msg.AskAgain || len(body) <= len(generation) || body[1:1+len(generation)] != generation {
		return 0, "", false
	}
	return push(body[0]), body[1+len(generation):], true
}

package dispatch

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/hooks"
	"github.com/cacheguard/go/internal/script"
)

const (
	quickTimeout = 25 * time.Millisecond // how long a caller may be held up by a request that it sends itself
	quickEnough  = 5 * time.Millisecond  // a round trip for which it need not look at its context
)

// quick is a client for requests that callers send by themselves. It sends nothing twice.
type quick struct {
	client   *redis.Client
	hooks    *hooks.Watch     // of the client that this one is a copy of
	asks     script.Processor // its patience is short
	releases script.Processor // is as patient as any, as a second copy of a release cannot always tell that the first one ran
	bounded  bool             // by contexts, which would cost a connection each time
}

func newQuick(c *redis.Client, timeout time.Duration) *quick {
	patient := c.WithTimeout(min(impatient(c.Options().ReadTimeout, timeout), timeout))
	return &quick{
		patient, hooks.Of(c), script.Once(c.WithTimeout(min(quickTimeout, timeout))), script.Once(patient),
		c.Options().ContextTimeoutEnabled,
	}
}

// idle reports whether there is a connection that is not in use. To wait for one, or to dial, takes too long.
func (q *quick) idle() bool { return q.client.PoolStats().IdleConns > 0 }

func (q *quick) run(ctx context.Context, call *script.Call, release bool) *redis.Cmd {
	if q.bounded {
		ctx = context.WithoutCancel(ctx)
	}
	if release {
		return call.Run(ctx, q.releases)
	}
	return call.Run(ctx, q.asks)
}

// direct has the caller send its request by itself, if that may be done, which saves two changes between goroutines: more than
// half of what a request costs besides its round trip. As go-redis does not interrupt a read when a context ends, that is
// for a Redis that is quick, and given up soon. Not ok: it was not done, or has failed in a way that says nothing.
func (p *part) direct(ctx context.Context, call *script.Call, trail *Trail, release bool) (reply Reply, ok bool) {
	if p.quick == nil || !p.quick.hooks.None() || !p.enterDirect() {
		return reply, false
	}
	defer p.leaveDirect()
	if !p.quick.idle() {
		return reply, false
	}
	if !trail.begin() {
		return p.notSent(), true
	}
	reply.Sent = time.Now()
	reply.Cmd = p.quick.run(ctx, call, release)
	err := reply.Err()
	p.took(time.Since(reply.Sent))
	trail.end(err)
	return reply, known(err)
}

// enterDirect takes a place among the requests under way.
func (p *part) enterDirect() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trip > quickEnough || p.underWay >= maxUnderWay || p.releases.Len()+p.asks.Len() > 0 {
		return false
	}
	p.underWay++
	return true
}

// leaveDirect gives the place up, to a lane if others have come meanwhile.
func (p *part) leaveDirect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay--
	p.fillLocked()
}

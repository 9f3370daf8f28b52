package detach

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/hooks"
	"github.com/cacheguard/go/internal/script"
)

const (
	quickTimeout = 25 * time.Millisecond  // how long a caller may be held up by a request that it sends itself
	quickEnough  = 5 * time.Millisecond   // a slower reply is the last for now that a caller waits for itself
	slowFor      = 100 * time.Millisecond // and how long that is
)

// Runner runs operations on one Redis client under a timeout.
//
// While Redis answers quickly, the caller sends the request by itself, which saves the change between goroutines: more than
// half of what a request costs besides its round trip. It does so with a client that gives up after quickTimeout, and so
// it may notice that much too late that its context has ended. What fails is run again, detached: an operation must be safe
// to run twice, as for go-redis anyway, which sends again what was not replied to.
type Runner struct {
	rdb     script.Processor
	quick   *quick // nil: the client cannot do that
	timeout time.Duration
	slow    atomic.Int64 // until when Redis counts as slow, in nanoseconds since base
}

// base makes monotonic time fit into an integer.
var base = time.Now()

// NewRunner returns a Runner.
func NewRunner(rdb script.Processor, timeout time.Duration) *Runner {
	r := &Runner{rdb: rdb, timeout: timeout}
	if c, ok := rdb.(*redis.Client); ok {
		r.quick = &quick{c.WithTimeout(min(quickTimeout, timeout)), hooks.Of(c)}
	}
	return r
}

// tryQuick runs op in the caller's goroutine, if that may be done. Not ok: run it detached.
func tryQuick[T any](ctx context.Context, r *Runner, op Op[T]) (value T, ok bool) {
	began := time.Since(base)
	if r.quick == nil || began < time.Duration(r.slow.Load()) || !r.quick.hooks.None() || !r.quick.connected() {
		return value, false
	}
	value, err := op(ctx, r.quick)
	if ended := time.Since(base); ended-began > quickEnough {
		r.slow.Store(int64(ended + slowFor))
	}
	return value, err == nil
}

// quick is a client whose patience is short, and that sends nothing twice.
type quick struct {
	*redis.Client
	hooks *hooks.Watch // of the client that this one is a copy of
}

// connected reports whether there is a connection that is not in use. To wait for one, or to dial, takes too long.
func (q *quick) connected() bool { return q.PoolStats().IdleConns > 0 }

func (q *quick) Process(ctx context.Context, cmd redis.Cmder) error {
	if c, ok := cmd.(*redis.Cmd); ok {
		cmd = once{c}
	}
	return q.Client.Process(ctx, cmd)
}

// once is a command that is not sent again.
type once struct{ *redis.Cmd }

// NoRetry is asked by go-redis.
func (once) NoRetry() bool { return true }

// Package invalidate sends the invalidations of a Guard, and repeats those that failed until they succeed.
package invalidate

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/replicas"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Writer sends what must not be forgotten.
type Writer struct {
	Redis interface {
		script.Processor
		script.Pipeliner
	}
	Timeout  time.Duration    // of an operation on Redis
	Replicas *replicas.Sender // nil: no replica has to acknowledge anything
	Breakers *breaker.Set
	Life     *lifecycle.Life
	Journal  *report.Journal
	Notices  *tier.Notices
	Local    func() *tier.Local

	Failed func(op, key string, err error) error // reports that Redis failed, and returns the error for that
	Untold func(op, key string, err error) error // does not report it
}

// write runs calls that must not be forgotten, all for one part of the keyspace, under RedisTimeout. Each command has its own error; if
// write itself returns an error, there are no commands: while the breaker is open, it is breaker.ErrOpen, at once. Only tasks may call it.
func (w *Writer) write(ctx context.Context, calls []*script.Call) ([]*redis.Cmd, error) {
	return w.tell(ctx, calls, func(ctx context.Context) []*redis.Cmd { return script.RunAll(ctx, w.Redis, calls) })
}

// writeOne is write for one call.
func (w *Writer) writeOne(ctx context.Context, call *script.Call) (*redis.Cmd, error) {
	cmds, err := w.tell(ctx, []*script.Call{call}, func(ctx context.Context) []*redis.Cmd {
		return []*redis.Cmd{call.Run(ctx, w.Redis)}
	})
	if err != nil {
		return nil, err
	}
	return cmds[0], cmds[0].Err()
}

// tell runs calls with run, or through acks, if the breaker allows it. The last attempt of a Guard that is closed is always made.
func (w *Writer) tell(
	ctx context.Context, calls []*script.Call, run func(context.Context) []*redis.Cmd,
) (cmds []*redis.Cmd, err error) {
	permit, refused := w.Breakers.Of(calls[0].Keys[0]).Allow()
	if refused == nil {
		defer func() { permit.Done(availability(cmds, err)) }()
	} else if w.Life.Ending.Err() == nil {
		return nil, refused
	}
	if w.Replicas != nil {
		cmds, _ = w.Replicas.Run(context.WithoutCancel(ctx), calls)
		return cmds, nil
	}
	return lifecycle.Bounded(context.WithoutCancel(ctx), w.Life, w.Timeout, func(ctx context.Context) ([]*redis.Cmd, error) { return run(ctx), nil }, nil)
}

// availability is what the outcome of a write says of Redis: any answer says that it can serve.
func availability(cmds []*redis.Cmd, err error) error {
	for _, cmd := range cmds {
		if err = cmd.Err(); !breaker.Unavailable(err) {
			return nil
		}
	}
	return err
}

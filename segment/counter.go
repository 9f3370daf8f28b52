package segment

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/detach"
	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/primary"
)

// Redis is what a Counter needs of a client: *redis.Client (also a Sentinel failover client), *redis.ClusterClient and
// *redis.Ring have it. The Counter never configures or closes the client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// Counter counts units, under as many names as one likes. It is safe for concurrent use.
type Counter struct {
	rdb   Redis
	redis *detach.Runner
	cfg   Config
	lanes lanes
	life  *lifecycle.Life
}

// New returns a Counter. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
// Clients with a client-side cache, and cluster clients that may read from replicas, are refused: they would count what
// has been taken.
func New(rdb Redis, cfg Config) (*Counter, error) {
	if err := errors.Join(primary.Check(rdb), cfg.check()); err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	cfg = cfg.withDefaults()
	return &Counter{rdb: rdb, redis: detach.NewRunner(rdb, cfg.RedisTimeout), cfg: cfg, life: lifecycle.New()}, nil
}

// Close returns when everything the Counter started has ended. What was taken for calls that failed is given back first, if
// a last attempt succeeds. When Redis hangs, that takes the client's time-outs. Calls that wait return ErrClosed. Close
// may be called more than once, and always returns nil.
func (c *Counter) Close() error {
	if c == nil {
		return nil // New failed: there is nothing to close
	}
	c.life.Close(ErrClosed, nil)
	return nil
}

// most is how many units a segment may be given. All together still are as many as Lua counts exactly.
const most = 1 << 44

// begin begins a call that is about units. Each nil is followed by one life.Done.
func (c *Counter) begin(ctx context.Context, op, name string, units, least int64) error {
	switch {
	case c == nil:
		return errNilCounter
	case name == "":
		return errEmptyName
	case units < least || units > most:
		return failed(op, name, fmt.Errorf("%d is not between %d and 2^44", units, least))
	case ctx.Err() != nil:
		return failed(op, name, detach.Ended(ctx))
	case !c.life.Begin():
		return ErrClosed
	}
	return nil
}

// run runs op under RedisTimeout. It must be safe to run twice.
func run[T any](ctx context.Context, c *Counter, op detach.Op[T]) (T, error) {
	value, err := detach.Run(ctx, c.life, c.redis, op, nil)
	return value, orEnded(ctx, err)
}

// runPipeline runs op, which sends a pipeline, under RedisTimeout.
func runPipeline[T any](ctx context.Context, c *Counter, op func(context.Context) (T, error)) (T, error) {
	value, err := detach.Do(ctx, c.life, c.cfg.RedisTimeout, op, nil)
	return value, orEnded(ctx, err)
}

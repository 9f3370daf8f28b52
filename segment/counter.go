package segment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Redis is what a Counter needs of a client: *redis.Client (also a Sentinel failover client) and *redis.ClusterClient have
// it. A *redis.Ring is refused: units could be taken twice when one process does not reach a shard. The Counter never configures or closes the client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// Counter counts units, under any number of names. It is safe for concurrent use.
type Counter struct {
	rdb   Redis
	redis *send.Sender
	cfg   Config
	lanes lanes
	life  *lifecycle.Life
}

// New returns a Counter. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
// It refuses clients with a client-side cache, and cluster clients that may read from replicas: they would count units
// that have been taken.
func New(rdb Redis, cfg Config) (*Counter, error) {
	if err := errors.Join(goredis.CheckPrimary(rdb), goredis.CheckOnePlace(rdb), cfg.check()); err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	cfg = cfg.withDefaults()
	life := lifecycle.New()
	return &Counter{rdb: rdb, redis: send.NewSender(rdb, cfg.RedisTimeout, life), cfg: cfg, life: life}, nil
}

// Close returns when everything that the Counter started has ended. It makes a last attempt to give back the units of
// failed calls. When Redis hangs, that takes the client's time-outs. Waiting calls return ErrClosed. Close may be called
// more than once, and always returns nil.
func (c *Counter) Close() error {
	if c == nil {
		return nil // New failed: there is nothing to close
	}
	c.life.Close(ErrClosed, nil)
	c.redis.Close()
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
		return failed(op, name, lifecycle.Ended(ctx))
	case !c.life.Begin():
		return ErrClosed
	}
	return nil
}

// ask runs the call, which must be safe to run twice.
func (c *Counter) ask(ctx context.Context, call script.Call) (int64, error) {
	reply, err := c.redis.Ask(ctx, call, nil)
	if err != nil {
		return 0, orEnded(ctx, err)
	}
	return reply.Int64()
}

// askAll runs the calls in as few requests as there are nodes, and returns the first error. They must be safe to run twice.
func (c *Counter) askAll(ctx context.Context, calls []script.Call) ([]*redis.Cmd, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	replies, errs := c.redis.AskTogether(ctx, calls, make([]*send.Trail, len(calls)))
	cmds, failed := make([]*redis.Cmd, len(calls)), error(nil)
	for i, err := range errs {
		if send.Again(err) && failed == nil {
			replies[i], err = c.redis.Ask(ctx, calls[i], nil)
		}
		if cmds[i] = replies[i].Cmd; failed == nil {
			failed = err
		}
	}
	return cmds, orEnded(ctx, failed)
}

// lane is a sequence of takes, one at a time, each with a greater number than the last. So Redis need remember only the
// last of them in each segment.
type lane struct {
	id     string
	number int64
}

// lanes without a take under way.
type lanes struct {
	mu   sync.Mutex
	free []*lane
}

// borrow returns a lane with the next number. The one that was used last comes first, so that few are in use.
func (l *lanes) borrow() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.free)
	if n == 0 {
		return &lane{id: rand.Text(), number: 1}
	}
	next := l.free[n-1]
	l.free = l.free[:n-1]
	next.number++
	return next
}

func (l *lanes) giveBack(used *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, used)
}

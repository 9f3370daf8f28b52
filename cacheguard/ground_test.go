package cacheguard_test

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// ground is where attacks from outside take place: they know the promises, and nothing of the code. Its source counts writes; every value
// is the number of the write that it was loaded after.
type ground struct {
	*testing.T
	prefix  string
	writes  atomic.Int64
	least   atomic.Int64 // the newest write whose invalidation has returned
	gets    atomic.Int64
	olds    atomic.Int64
	reports sync.Once
}

func newGround(t *testing.T) *ground { return &ground{T: t, prefix: "attack-" + rand.Text()} }

func (g *ground) guard(rdb cacheguard.Redis, cfg cacheguard.Config) *cacheguard.Guard {
	g.Helper()
	cfg.Prefix = g.prefix
	if cfg.RedisTimeout == 0 {
		cfg.RedisTimeout = redistest.Patience
	}
	guard, err := cacheguard.New(rdb, cfg)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = guard.Close() }) // always nil
	return guard
}

func (g *ground) load(context.Context) (int64, error) { return g.writes.Load(), nil }

// things opens a kind whose tags are all and another.
func (g *ground) things(guard *cacheguard.Guard) *cacheguard.Cache[int, int64] {
	g.Helper()
	cache, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, int64]{
		Name: "thing", Tags: func(int, int64) []string { return []string{"all", "another"} },
		Load: func(ctx context.Context, _ int) (int64, error) { return g.load(ctx) },
		LoadMany: func(_ context.Context, ids []int) (map[int]int64, error) {
			now, all := g.writes.Load(), make(map[int]int64, len(ids))
			for _, id := range ids {
				all[id] = now
			}
			return all, nil
		},
	})
	if err != nil {
		g.Fatal(err)
	}
	return cache
}

// write is a write and its invalidation. If that fails, its instance has a promise to keep all the same: where is says so.
func (g *ground) write(invalidate func() error) {
	g.Helper()
	now := g.writes.Add(1)
	if err := invalidate(); err != nil && !errors.As(err, new(*cacheguard.RedisError)) {
		g.Error(err)
		return
	}
	g.least.Store(now)
}

// read checks what a Get returns.
func (g *ground) read(get func() (int64, error)) {
	least := g.least.Load()
	got, err := get()
	if err != nil {
		g.Error(err)
		return
	}
	g.check("a Get", least, got)
}

func (g *ground) check(who string, least, got int64) {
	g.gets.Add(1)
	if got < least {
		g.olds.Add(1)
		g.reports.Do(func() { g.Errorf("%s that began after write %d was invalidated got %d", who, least, got) })
	}
}

// over says how it went.
func (g *ground) over() {
	g.Helper()
	if g.gets.Load() == 0 || g.least.Load() == 0 {
		g.Error("nothing happened")
	}
	if n := g.olds.Load(); n > 0 {
		g.Errorf("%d of %d were old", n, g.gets.Load())
	}
}

// beside runs f n times at once, again and again until done returns. Between two runs the processors are for others.
func beside(n int, f func(), done func()) {
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range n {
		all.Go(func() { // owner: the test; stop: stop; joined below
			for {
				select {
				case <-stop:
					return
				default:
					f()
					<-time.After(mathrand.N(time.Millisecond))
				}
			}
		})
	}
	done()
	close(stop)
	all.Wait()
}

// slow is a hook of a client that delays what delay says, before it is sent.
type slow func(cmds []redis.Cmder) time.Duration

func (s slow) wait(cmds ...redis.Cmder) {
	if d := s(cmds); d > 0 {
		<-time.After(d)
	}
}

func (slow) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

func (s slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.wait(cmd)
		return next(ctx, cmd)
	}
}

func (s slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.wait(cmds...)
		return next(ctx, cmds)
	}
}

// slowReply is a hook of a client that keeps the replies from it for as long as the function says.
type slowReply func(cmds []redis.Cmder) time.Duration

func (slowReply) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s slowReply) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		slow(s).wait(cmd)
		return err
	}
}

func (s slowReply) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		slow(s).wait(cmds...)
		return err
	}
}

func isRead(cmds []redis.Cmder) bool {
	for _, c := range cmds {
		if name := c.Name(); name == "get" || name == "mget" {
			return true
		}
	}
	return false
}

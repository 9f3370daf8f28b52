package cacheguard_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// late delays what a client sends, by name: a hook, as a user could write one.
type late struct {
	by atomic.Int64
	of string // empty: everything
}

func (l *late) wait(name string) {
	if d := time.Duration(l.by.Load()); d > 0 && (l.of == "" || l.of == name) {
		time.Sleep(d)
	}
}

func (l *late) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *late) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		l.wait(cmd.Name())
		return next(ctx, cmd)
	}
}

func (l *late) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		l.wait(cmds[0].Name())
		return next(ctx, cmds)
	}
}

// Whatever of Redis is slow, nobody gets an older value than an Invalidate that had returned when he asked, no error comes from it, and no more
// loads run than MaxLoads.
func TestASlowRedisBreaksNoPromise(t *testing.T) {
	t.Parallel()
	type attack struct {
		of       string
		by       time.Duration
		swings   bool
		load     time.Duration
		failing  bool
		maxLoads int
	}
	expect.Each(t, expect.Some(3, map[string]attack{
		"everything":          {by: 60 * time.Millisecond, load: 5 * time.Millisecond},
		"reads":               {of: "mget", by: 60 * time.Millisecond, load: 5 * time.Millisecond},
		"scripts":             {of: "evalsha", by: 60 * time.Millisecond, load: 5 * time.Millisecond},
		"swings":              {by: 60 * time.Millisecond, swings: true, load: 5 * time.Millisecond},
		"a slower loader":     {by: 40 * time.Millisecond, load: 200 * time.Millisecond},
		"a loader that fails": {by: 60 * time.Millisecond, load: 5 * time.Millisecond, failing: true},
		"one load":            {by: 60 * time.Millisecond, load: 5 * time.Millisecond, maxLoads: 1},
	}), func(t *testing.T, _ string, a attack) {
		slow := &late{of: a.of}
		prefix := "attack-" + rand.Text()
		open := func(hook redis.Hook) *cacheguard.Guard {
			rdb := redis.NewClient(&redis.Options{Addr: cacheguard.SharedAddr()})
			if hook != nil {
				rdb.AddHook(hook)
			}
			g, err := cacheguard.New(rdb, cacheguard.Config{
				Prefix: prefix, HedgeAfter: 2 * time.Millisecond, MaxLoads: a.maxLoads, RedisTimeout: redistest.Patience, LeaseTTL: redistest.Patience,
			})
			expect.Must(t, err)
			t.Cleanup(func() {
				_ = g.Close()   // always nil
				_ = rdb.Close() // all is done
			})
			return g
		}
		guards := []*cacheguard.Guard{open(slow), open(nil)}
		const keys = 5
		var db, invalidated [keys]atomic.Int64
		var running, most, loads atomic.Int64
		errDown := errors.New("down")
		load := func(k int) func(context.Context) (int64, error) {
			return func(context.Context) (int64, error) {
				loads.Add(1)
				now := running.Add(1)
				defer running.Add(-1)
				for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
				}
				v := db[k].Load()
				time.Sleep(a.load)
				if a.failing && mathrand.IntN(2) == 0 {
					return 0, errDown
				}
				return v, nil
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(expect.Samples(2, 6))*time.Second)
		defer stop()
		slow.by.Store(int64(a.by))
		var mu sync.Mutex
		var took []time.Duration
		var workers sync.WaitGroup
		for i := range 12 {
			workers.Go(func() {
				for ctx.Err() == nil {
					k := mathrand.IntN(keys)
					least, began := invalidated[k].Load(), time.Now()
					v, err := cacheguard.Get(context.Background(), guards[i%2], fmt.Sprint(k), load(k))
					var failed *cacheguard.LoadError
					switch {
					case a.failing && (errors.Is(err, errDown) || errors.As(err, &failed)):
					case err != nil:
						t.Error(err)
					case v < least:
						t.Errorf("read %d, after the Invalidate of %d had returned", v, least)
					}
					if i%2 == 0 {
						mu.Lock()
						took = append(took, time.Since(began))
						mu.Unlock()
					}
					time.Sleep(time.Duration(mathrand.IntN(16/expect.Samples(1, 4))) * time.Millisecond)
				}
			})
		}
		workers.Go(func() {
			for ctx.Err() == nil {
				k := mathrand.IntN(keys)
				v := db[k].Add(1)
				if err := guards[mathrand.IntN(2)].Invalidate(context.Background(), fmt.Sprint(k)); err != nil {
					t.Error(err)
				} else {
					invalidated[k].Store(v)
				}
				if a.swings {
					slow.by.Store(int64(a.by) - slow.by.Load())
				}
				time.Sleep(time.Duration(mathrand.IntN(200)) * time.Millisecond)
			}
		})
		workers.Wait()
		if a.maxLoads > 0 && most.Load() > int64(len(guards)*a.maxLoads) {
			t.Errorf("%d loads at once", most.Load())
		}
		slices.Sort(took)
		s := guards[0].Stats()
		t.Logf("%d Gets, p50 %v, p90 %v; %d loads, %d at once; slow %d, hedged %v, won %v", len(took), took[len(took)/2], took[len(took)*9/10],
			loads.Load(), most.Load(), s.SlowParts, s.Of("hedged_loads_total"), s.Of("hedges_won_total"))
	})
}

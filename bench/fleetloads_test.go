package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/semaphore"
)

// connections is a database with a pool of that many connections, shared by all. It counts the queries under way, including queries that wait
// for a connection.
type connections struct {
	pool                   chan struct{}
	running, most, queries atomic.Int64
}

func (c *connections) query(took time.Duration) {
	now := c.running.Add(1)
	for seen := c.most.Load(); now > seen && !c.most.CompareAndSwap(seen, now); seen = c.most.Load() {
	}
	c.queries.Add(1)
	c.pool <- struct{}{}
	time.Sleep(took) //nolint:forbidigo // the query
	<-c.pool
	c.running.Add(-1)
}

// openFleet opens instances with clients of their own, on the address.
func openFleet(b *testing.B, s *redistest.Server, addr string, n, permits int, cfg cacheguard.Config) []*cacheguard.Guard {
	b.Helper()
	guards := make([]*cacheguard.Guard, n)
	for i := range guards {
		o := *s.Client(b).Options()
		o.Addr = addr
		o.Dialer = nil                                                                                                   // it has another DialTimeout
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = time.Minute, time.Minute, time.Minute, time.Minute // a crowd on a busy machine
		rdb := redis.NewClient(&o)
		b.Cleanup(func() { _ = rdb.Close() })
		if permits > 0 {
			l, err := semaphore.NewLimiter(rdb, "loads", semaphore.Config{Permits: permits, TTL: cfg.LeaseTTL, RedisTimeout: cfg.RedisTimeout})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = l.Close() }) // always nil; after the Guard's
			cfg.Limiter = l
		}
		g, err := cacheguard.New(rdb, cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = g.Close() }) // always nil
		guards[i] = g
	}
	return guards
}

// coldFleet is instances that ask for the same cold keys at once, and crowds that ask for a hot key each while these are loaded.
type coldFleet struct {
	guards []*cacheguard.Guard
	keys   int
	db     connections
	hot    []time.Duration // from when a crowd came until one of it was answered
}

const (
	coldInstances  = 20
	coldPool       = 50
	coldQuery      = 5 * time.Millisecond
	hotKeys, crowd = 10, 20 // callers of a hot key on each instance
)

func (f *coldFleet) get(ctx context.Context, g *cacheguard.Guard, key string) error {
	_, err := cacheguard.Get(context.WithoutCancel(ctx), g, key, func(context.Context) (string, error) {
		f.db.query(coldQuery)
		return key, nil
	})
	return err
}

// start asks for all cold keys, and for a hot one each time another tenth of them is being loaded.
func (f *coldFleet) start(b *testing.B, round int) {
	err := scenario.Together(b.Context(), coldInstances*f.keys+1, func(ctx context.Context, i int) error {
		if i > 0 {
			i--
			return f.get(ctx, f.guards[i/f.keys], fmt.Sprint(round, ":", i%f.keys))
		}
		already := f.db.queries.Load()
		for hot := range hotKeys {
			for f.db.queries.Load()-already < int64(hot*f.keys/hotKeys+f.keys/20) && b.Context().Err() == nil {
				time.Sleep(100 * time.Microsecond) //nolint:forbidigo // so far
			}
			if err := f.crowd(ctx, fmt.Sprint(round, ":hot", hot)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// crowd makes callers on all instances ask for the key, and waits for the last.
func (f *coldFleet) crowd(ctx context.Context, key string) error {
	asked := time.Now()
	first := sync.OnceFunc(func() { f.hot = append(f.hot, time.Since(asked)) })
	return scenario.Together(ctx, crowd*len(f.guards), func(ctx context.Context, i int) error {
		defer first()
		return f.get(ctx, f.guards[i%len(f.guards)], key)
	})
}

// BenchmarkColdFleet makes each of 20 instances ask at once for COLD_KEYS keys (1,000) that nobody has, with and without a limit for the
// fleet, before a database of 50 connections whose queries take 5 ms. It fails if the database gets more queries at once than that
// allows.
func BenchmarkColdFleet(b *testing.B) {
	keys := 1000
	if n, err := strconv.Atoi(os.Getenv("COLD_KEYS")); err == nil && n > 0 {
		keys = n
	}
	for _, limit := range []int{0, coldPool} {
		b.Run("Permits="+strconv.Itoa(limit), func(b *testing.B) {
			s := redistest.Start(b)
			var failed atomic.Int64
			var why atomic.Value
			f := coldFleet{keys: keys, db: connections{pool: make(chan struct{}, coldPool)}}
			f.guards = openFleet(b, s, s.Addr(), coldInstances, limit, cacheguard.Config{
				Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventRedisError, func(_ context.Context, e cacheguard.Event) {
					failed.Add(1)
					why.Store(e.Err.Error())
				})},
				TTL: time.Hour, RedisTimeout: time.Minute, LeaseTTL: time.Minute, WaitTimeout: -1,
			})
			commands, reads, rounds := total(s.Commands()), s.Reads(), 0
			for b.Loop() {
				rounds++
				f.start(b, rounds)
			}
			b.StopTimer()
			if most := f.db.most.Load(); limit > 0 && most > int64(limit) {
				b.Errorf("%d queries at once, with %d permits; Redis failed %d times: %v", most, limit, failed.Load(), why.Load())
			}
			loads := float64(f.db.queries.Load())
			slices.Sort(f.hot)
			b.ReportMetric(float64(f.db.most.Load()), "queries-at-once")
			b.ReportMetric(loads/float64(rounds*(keys+hotKeys)), "queries/key")
			b.ReportMetric(float64(total(s.Commands())-commands)/loads, "commands/load")
			b.ReportMetric(float64(s.Reads()-reads)/loads, "requests/load")
			b.ReportMetric(float64(failed.Load()), "redis-errors")
			b.ReportMetric(float64(f.hot[len(f.hot)/2].Milliseconds()), "hot-p50-ms")
			b.ReportMetric(float64(f.hot[len(f.hot)-1].Milliseconds()), "hot-most-ms")
		})
	}
}

// total is how many commands there were, those of scripts included.
func total(commands map[string]int64) (n int64) {
	for _, times := range commands {
		n += times
	}
	return n
}

// BenchmarkLoneMissOfAFleet is what a miss costs that nobody else wants, with Redis a round trip away: a Limiter adds the way to the
// semaphore.
func BenchmarkLoneMissOfAFleet(b *testing.B) {
	for _, roundTrip := range []time.Duration{0, 4 * time.Millisecond} {
		for _, limit := range []int{0, 50} {
			b.Run(fmt.Sprintf("R=%v/Permits=%d", roundTrip, limit), func(b *testing.B) {
				s := redistest.Start(b)
				addr := s.Addr()
				if roundTrip > 0 {
					away, err := distance.Apart(addr, roundTrip)
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = away.Close() })
					addr = away.Addr()
				}
				g := openFleet(b, s, addr, 1, limit, cacheguard.Config{})[0]
				for n := 0; b.Loop(); n++ {
					if _, err := cacheguard.Get(b.Context(), g, strconv.Itoa(n), func(context.Context) (string, error) { return "v", nil }); err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the next miss comes later, when no permit is at hand
					b.StartTimer()
				}
			})
		}
	}
}

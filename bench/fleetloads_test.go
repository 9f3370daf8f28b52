package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// connections counts the queries that a database is asked at once, each of which takes some time.
type connections struct{ running, most, queries atomic.Int64 }

func (c *connections) query(took time.Duration) {
	now := c.running.Add(1)
	for seen := c.most.Load(); now > seen && !c.most.CompareAndSwap(seen, now); seen = c.most.Load() {
	}
	c.queries.Add(1)
	time.Sleep(took) //nolint:forbidigo // the query
	c.running.Add(-1)
}

// openFleet opens instances with clients of their own, on the address.
func openFleet(b *testing.B, s *redistest.Server, addr string, n int, cfg cacheguard.Config) []*cacheguard.Guard {
	b.Helper()
	guards := make([]*cacheguard.Guard, n)
	for i := range guards {
		o := *s.Client(b).Options()
		o.Addr = addr
		rdb := redis.NewClient(&o)
		b.Cleanup(func() { _ = rdb.Close() })
		g, err := cacheguard.New(rdb, cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = g.Close() }) // always nil
		guards[i] = g
	}
	return guards
}

// BenchmarkColdFleet has each of 20 instances ask for COLD_KEYS keys (1,000) at once that nobody has, with and without a limit for
// the fleet. A query takes 5 ms. It fails when the database is asked more at once than FleetLoads allows.
func BenchmarkColdFleet(b *testing.B) {
	const instances, took = 20, 5 * time.Millisecond
	keys := 1000
	if n, err := strconv.Atoi(os.Getenv("COLD_KEYS")); err == nil && n > 0 {
		keys = n
	}
	for _, limit := range []int{0, 50} {
		b.Run("FleetLoads="+strconv.Itoa(limit), func(b *testing.B) {
			s := redistest.Start(b)
			var failed atomic.Int64
			cfg := cacheguard.Config{FleetLoads: limit, Hooks: cacheguard.Hooks{OnRedisError: func(*cacheguard.RedisError) { failed.Add(1) }},
				RedisTimeout: time.Minute, LeaseTTL: time.Minute, WaitTimeout: -1}
			guards := openFleet(b, s, s.Addr(), instances, cfg)
			var db connections
			before, rounds := total(s.Commands()), 0
			for b.Loop() {
				rounds++
				err := scenario.Together(b.Context(), instances*keys, func(ctx context.Context, i int) error {
					key := fmt.Sprint(rounds, ":", i%keys)
					_, err := cacheguard.Get(context.WithoutCancel(ctx), guards[i/keys], key, func(context.Context) (string, error) {
						db.query(took)
						return key, nil
					})
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if most := db.most.Load(); limit > 0 && most > int64(limit) {
				b.Errorf("%d queries at once, FleetLoads is %d; Redis failed %d times", most, limit, failed.Load())
			}
			n := float64(rounds * keys)
			b.ReportMetric(float64(db.most.Load()), "queries-at-once")
			b.ReportMetric(float64(db.queries.Load())/n, "queries/key")
			b.ReportMetric(float64(total(s.Commands())-before)/n, "commands/key")
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

// BenchmarkLoneMissOfAFleet is what a miss costs that nobody else wants, with Redis a round trip away: FleetLoads adds the way to the
// semaphore.
func BenchmarkLoneMissOfAFleet(b *testing.B) {
	for _, roundTrip := range []time.Duration{0, 4 * time.Millisecond} {
		for _, limit := range []int{0, 50} {
			b.Run(fmt.Sprintf("R=%v/FleetLoads=%d", roundTrip, limit), func(b *testing.B) {
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
				g := openFleet(b, s, addr, 1, cacheguard.Config{FleetLoads: limit})[0]
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

package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/segment"
)

// takers is how many callers there are, on takerClients clients.
const (
	takers       = 64
	takerClients = 4
)

// stock takes one unit, as a user of it would.
type stock interface {
	take(ctx context.Context, name string) error
}

type segments struct{ *segment.Counter }

func (s segments) take(ctx context.Context, name string) error { return s.Take(ctx, name, 1) }

// swapped is a stock in one value, changed by compare-and-swap.
type swapped struct{ *cas.Store }

func (s swapped) take(ctx context.Context, name string) error {
	_, err := cas.Update(ctx, s.Store, name, func(left int, _ bool) (int, error) {
		if left == 0 {
			return 0, errors.New("sold out")
		}
		return left - 1, nil
	})
	return err
}

// scripted is the script of the tutorials: nothing is remembered, so a lost reply takes twice.
type scripted struct{ redis.Scripter }

var decrement = redis.NewScript(`
local left = tonumber(redis.call('GET', KEYS[1]) or 0)
if left < 1 then return 0 end
redis.call('DECR', KEYS[1])
return 1`)

func (s scripted) take(ctx context.Context, name string) error {
	taken, err := decrement.Run(ctx, s, []string{name}).Bool()
	if err == nil && !taken {
		err = errors.New("sold out")
	}
	return err
}

// BenchmarkTake makes 64 callers take single units from one stock that is never short.
func BenchmarkTake(b *testing.B) {
	b.Run("one server", func(b *testing.B) {
		benchmarkTake(b, []*redistest.Server{shared}, func() redis.UniversalClient { return client(b) })
	})
	b.Run("cluster of 3", func(b *testing.B) {
		c := redistest.StartCluster(b, 0)
		benchmarkTake(b, []*redistest.Server{c.Node(0), c.Node(1), c.Node(2)}, func() redis.UniversalClient {
			return c.Client(b, func(o *redis.ClusterOptions) { o.PoolSize = poolSize })
		})
	})
}

func benchmarkTake(b *testing.B, nodes []*redistest.Server, newClient func() redis.UniversalClient) {
	for _, n := range []int{1, 3, 12} {
		b.Run(fmt.Sprintf("segments=%d", n), func(b *testing.B) {
			measureTakes(b, nodes, func() (stock, error) {
				c, err := segment.New(newClient(), segment.Config{Prefix: "bench", Segments: n})
				if err == nil {
					b.Cleanup(func() { _ = c.Close() })
				}
				return segments{c}, err
			}, func(ctx context.Context, s stock, name string) error {
				return s.(segments).Create(ctx, name, 1<<40)
			})
		})
	}
	b.Run("script by hand", func(b *testing.B) {
		rdb := newClient()
		measureTakes(b, nodes, func() (stock, error) { return scripted{newClient()}, nil },
			func(ctx context.Context, _ stock, name string) error { return rdb.Set(ctx, name, 1<<40, ttl).Err() })
	})
	b.Run("compare-and-swap", func(b *testing.B) {
		measureTakes(b, nodes, func() (stock, error) {
			s, err := cas.New(newClient(), cas.Config{Prefix: "bench", MaxAttempts: -1})
			if err == nil {
				b.Cleanup(func() { _ = s.Close() })
			}
			return swapped{s}, err
		}, func(ctx context.Context, s stock, name string) error {
			_, err := cas.Swap(ctx, s.(swapped).Store, name, "", 1<<40)
			return err
		})
	})
}

// measureTakes opens a stock for each client, creates it, and lets the takers share b.N takes.
func measureTakes(
	b *testing.B, nodes []*redistest.Server,
	open func() (stock, error),
	create func(context.Context, stock, string) error,
) {
	name := fmt.Sprintf("stock:%d", time.Now().UnixNano())
	stocks := make([]stock, takerClients)
	for i := range stocks {
		var err error
		if stocks[i], err = open(); err != nil {
			b.Fatal(err)
		}
	}
	if err := create(b.Context(), stocks[0], name); err != nil {
		b.Fatal(err)
	}
	take := func(n int64) error {
		var left atomic.Int64
		left.Store(n)
		return scenario.Together(b.Context(), takers, func(_ context.Context, i int) error {
			for left.Add(-1) >= 0 {
				if err := stocks[i%len(stocks)].take(b.Context(), name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := take(takers); err != nil { // connections
		b.Fatal(err)
	}
	before := cpuTimes(b, nodes)
	b.ResetTimer()
	if err := take(int64(b.N)); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	busiest := 0.0
	for i, after := range cpuTimes(b, nodes) {
		busiest = max(busiest, after-before[i])
	}
	b.ReportMetric(busiest*1e6/float64(b.N), "busiest-node-µs/take")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "takes/s")
}

// cpuTimes are the seconds of processor time that each node has used.
func cpuTimes(b *testing.B, nodes []*redistest.Server) []float64 {
	b.Helper()
	times := make([]float64, len(nodes))
	for i, node := range nodes {
		info := node.Info("cpu")
		for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
			seconds, err := strconv.ParseFloat(info[field], 64)
			if err != nil {
				b.Fatal(err)
			}
			times[i] += seconds
		}
	}
	return times
}

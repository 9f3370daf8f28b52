package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const readers = 64

// BenchmarkClusterHit makes 64 callers of one instance read what is there, on a cluster of three nodes, beside a plain GET for each call.
func BenchmarkClusterHit(b *testing.B) {
	const keys = 10_000
	cluster := redistest.StartCluster(b, 0)
	newClient := func() *redis.ClusterClient {
		return cluster.Client(b, func(o *redis.ClusterOptions) { o.PoolSize = poolSize })
	}
	b.Run("cacheguard", func(b *testing.B) {
		g := newGuard(b, newClient(), cacheguard.Config{})
		readAll(b, keys, func(ctx context.Context, key string, value []byte) ([]byte, error) {
			return g.Get(ctx, key, func(context.Context) ([]byte, error) { return value, nil })
		})
	})
	b.Run("GET + SET by hand", func(b *testing.B) {
		rdb := newClient()
		readAll(b, keys, func(ctx context.Context, key string, value []byte) ([]byte, error) {
			got, err := rdb.Get(ctx, key).Bytes()
			if err != nil {
				return value, rdb.Set(ctx, key, value, ttl).Err()
			}
			return got, nil
		})
	})
}

// readAll reads every key, which stores it, and then some of them again and again.
func readAll(b *testing.B, n int, get func(ctx context.Context, key string, value []byte) ([]byte, error)) {
	keys, values := make([]string, n), make([][]byte, n)
	for i := range n {
		keys[i] = fmt.Sprintf("hit:%s:%d", b.Name(), i)
		values[i] = scenario.ValueOf(keys[i], valueSize)
	}
	read := func(ctx context.Context, i int) error {
		got, err := get(ctx, keys[i], values[i])
		return scenario.Check(keys[i], got, values[i], err)
	}
	err := scenario.Together(b.Context(), readers, func(ctx context.Context, reader int) error {
		for i := reader; i < n; i += readers {
			if err := read(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism((readers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		ctx, cancel := context.WithCancel(b.Context()) // its own, as every request has
		defer cancel()
		for pb.Next() {
			if err := read(ctx, rand.IntN(n)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "gets/s")
}

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/redistest"
)

const readers = 64

// BenchmarkHit has 64 callers of one instance read what is there.
func BenchmarkHit(b *testing.B) {
	b.Run("one key", func(b *testing.B) { eachLibrary(b, 1) })
	b.Run("10,000 keys", func(b *testing.B) { eachLibrary(b, 10_000) })
}

func eachLibrary(b *testing.B, keys int) {
	for _, lib := range append(libraries[:len(libraries):len(libraries)], localTier) {
		set := newKeySet(lib.name, keys)
		b.Run(lib.name, func(b *testing.B) { readAll(b, lib.open(b), set) })
	}
}

func readAll(b *testing.B, c cache, set *keySet) {
	set.fill(b, c)
	b.SetParallelism((readers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		ctx, cancel := context.WithCancel(b.Context()) // its own, as every request has
		defer cancel()
		for pb.Next() {
			key, value := set.pick()
			if err := c.get(ctx, key, value, neverLoad); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "gets/s")
}

// BenchmarkClusterHit is the same on a cluster of three nodes, beside a plain GET for each call.
func BenchmarkClusterHit(b *testing.B) {
	cluster := redistest.StartCluster(b, 0)
	for _, lib := range []library{
		{name: "cacheguard", open: func(b *testing.B) cache {
			return newGuard(b, clusterClient(b, cluster), cacheguard.Config{})
		}},
		{name: "by hand", open: func(b *testing.B) cache { return byHand{clusterClient(b, cluster)} }},
	} {
		set := newKeySet(lib.name, 10_000)
		b.Run(lib.name, func(b *testing.B) { readAll(b, lib.open(b), set) })
	}
}

func clusterClient(b *testing.B, c *redistest.Cluster) *redis.ClusterClient {
	return c.Client(b, func(o *redis.ClusterOptions) { o.PoolSize = poolSize })
}

// keySet are the keys that a benchmark reads.
type keySet struct {
	keys   []string
	values [][]byte
}

func newKeySet(name string, n int) *keySet {
	s := &keySet{keys: make([]string, n), values: make([][]byte, n)}
	for i := range n {
		s.keys[i] = fmt.Sprintf("hit:%s:%d:%d", name, n, i)
		s.values[i] = valueOf(s.keys[i])
	}
	return s
}

func (s *keySet) pick() (key string, value []byte) {
	i := 0
	if len(s.keys) > 1 {
		i = rand.IntN(len(s.keys))
	}
	return s.keys[i], s.values[i]
}

// fill reads every key, which loads those that are missing, and opens the connections that so many readers need.
func (s *keySet) fill(b *testing.B, c cache) {
	b.Helper()
	err := together(b.Context(), readers, func(ctx context.Context, reader int) error {
		for i := reader; i < max(len(s.keys), readers); i += readers {
			i := i % len(s.keys)
			load := func() ([]byte, error) { return s.values[i], nil }
			if err := c.get(ctx, s.keys[i], s.values[i], load); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

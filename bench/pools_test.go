package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/distance"
)

// BenchmarkPools has 64 callers of one instance read what is there on a server 0.3 ms away, with the pools that docs/production.md leaves to
// choose.
func BenchmarkPools(b *testing.B) {
	road, err := distance.Apart(shared.Addr(), 300*time.Microsecond)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = road.Close() })
	for _, pool := range []int{10, 20} {
		for _, pipelines := range []int{0, -1} { // 0: ten more, for pipelines; -1: all share one
			b.Run(fmt.Sprintf("PoolSize=%d/PipelinePoolSize=%d", pool, pipelines), func(b *testing.B) {
				rdb := redis.NewClient(&redis.Options{Addr: road.Addr(), PoolSize: pool, PipelinePoolSize: pipelines})
				b.Cleanup(func() { _ = rdb.Close() })
				g := newGuard(b, rdb, cacheguard.Config{})
				readAll(b, 10_000, func(ctx context.Context, key string, value []byte) ([]byte, error) {
					return g.Get(ctx, key, func(context.Context) ([]byte, error) { return value, nil })
				})
			})
		}
	}
}

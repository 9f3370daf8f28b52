package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
)

const (
	valueSize = 1 << 10
	ttl       = time.Hour // longer than any run
	lockTTL   = 10 * time.Second
	poolSize  = 20               // go-redis' own choice on two cores, fixed so that all machines measure the same
	tooLong   = 20 * time.Second // when a call is given up, and the benchmark with it
)

var errLoaded = errors.New("a hit was loaded")

func neverLoad(context.Context) ([]byte, error) { return nil, errLoaded }

func client(b *testing.B) *redis.Client {
	return shared.Client(b, func(o *redis.Options) { o.PoolSize = poolSize })
}

// guarded is a Guard of a benchmark that needs one of its own kind, among rivals.
type guarded struct{ *cacheguard.Guard }

func newGuard(b *testing.B, rdb cacheguard.Redis, cfg cacheguard.Config) guarded {
	b.Helper()
	cfg.Prefix = "bench"
	if cfg.TTL == 0 {
		cfg.TTL = ttl
	}
	g, err := cacheguard.New(rdb, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Close() })
	return guarded{g}
}

func (c guarded) Get(ctx context.Context, key string, load rivals.Loader) ([]byte, error) {
	return cacheguard.Get(ctx, c.Guard, key, load)
}

func (c guarded) Invalidate(ctx context.Context, key string) error {
	return c.Guard.Invalidate(ctx, key)
}

// readGuarded reads what must be there.
func readGuarded(ctx context.Context, g *cacheguard.Guard, key string, want []byte) error {
	got, err := cacheguard.Get(ctx, g, key, neverLoad)
	return scenario.Check(key, got, want, err)
}

// timed adds how long a hundred reads took.
func timed(b *testing.B, times []time.Duration, read func() error) []time.Duration {
	const batch = 100
	for range batch {
		start := time.Now()
		err := read()
		times = append(times, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
	}
	return times
}

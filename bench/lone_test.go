package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// BenchmarkLoneCaller has one goroutine read one key, with nobody to share anything with.
func BenchmarkLoneCaller(b *testing.B) {
	const key = "lone"
	rdb := client(b)
	g := newGuard(b, rdb, cacheguard.Config{})
	want := valueOf(key)
	raw := byHand{rdb}
	fill(b, raw, key, want)
	fill(b, g, key, want)
	plain := func() error { return readPlainly(b.Context(), rdb, key, want) }
	guarded := func() error { return readGuarded(b.Context(), g.Guard, key, want) }
	b.Run("interleaved", func(b *testing.B) { interleave(b, plain, guarded) })
	b.Run("plain GET", func(b *testing.B) { repeat(b, plain) })
	b.Run("cacheguard", func(b *testing.B) { repeat(b, guarded) })
}

func fill(b *testing.B, c cache, key string, want []byte) {
	b.Helper()
	if err := c.get(b.Context(), key, want, func() ([]byte, error) { return want, nil }); err != nil {
		b.Fatal(err)
	}
}

func readPlainly(ctx context.Context, rdb *redis.Client, key string, want []byte) error {
	got, err := rdb.Get(ctx, key).Bytes()
	return check(key, got, want, err)
}

func readGuarded(ctx context.Context, g *cacheguard.Guard, key string, want []byte) error {
	got, err := cacheguard.Get(ctx, g, key, neverLoadInContext)
	return check(key, got, want, err)
}

func neverLoadInContext(context.Context) ([]byte, error) { return nil, errLoaded }

func repeat(b *testing.B, read func() error) {
	b.ReportAllocs()
	for b.Loop() {
		if err := read(); err != nil {
			b.Fatal(err)
		}
	}
}

// interleave compares the medians of both ways to read, which take turns, so that a slow moment of the machine is one
// for both.
func interleave(b *testing.B, plain, guarded func() error) {
	var plainTimes, guardedTimes []time.Duration
	for b.Loop() {
		plainTimes = timed(b, plainTimes, plain)
		guardedTimes = timed(b, guardedTimes, guarded)
	}
	slices.Sort(plainTimes)
	slices.Sort(guardedTimes)
	p, g := percentile(plainTimes, 50), percentile(guardedTimes, 50)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(p)/1e3, "plain-p50-µs")
	b.ReportMetric(float64(g)/1e3, "cacheguard-p50-µs")
	b.ReportMetric(float64(g)/float64(p), "p50-ratio")
}

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

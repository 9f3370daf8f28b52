package bench

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/memory"
)

// local is what a service without Redis does with its cache.
type local struct {
	get    func(ctx context.Context, key string, value []byte) ([]byte, error)
	update func(ctx context.Context, key string) error
}

// locals are package memory, without a local tier and with one, beside what one would take instead: otter, whose misses singleflight shares. That
// stores what a load returns, whatever was written meanwhile.
var locals = []struct {
	name string
	open func(b *testing.B) local
}{
	{"cacheguard on memory", func(b *testing.B) local { return onMemory(b, cacheguard.LocalConfig{}) }},
	{"cacheguard on memory, with a local tier", func(b *testing.B) local {
		return onMemory(b, cacheguard.LocalConfig{TTL: time.Hour, MaxBytes: 256 << 20})
	}},
	{"otter and singleflight", onOtter},
}

func onMemory(b *testing.B, tier cacheguard.LocalConfig) local {
	rdb, err := memory.New(memory.Config{MaxBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = rdb.Close() }) // nobody uses it any more
	g, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "bench", TTL: time.Hour, Local: tier})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Close() }) // always nil
	return local{
		get: func(ctx context.Context, key string, value []byte) ([]byte, error) {
			return cacheguard.Get(ctx, g, key, func(context.Context) ([]byte, error) { return value, nil })
		},
		update: func(ctx context.Context, key string) error {
			return g.Update(ctx, key, func(context.Context) error { return nil })
		},
	}
}

func onOtter(b *testing.B) local {
	cache, err := otter.New(&otter.Options[string, []byte]{
		MaximumWeight: 1 << 30, Weigher: func(key string, value []byte) uint32 { return uint32(len(key) + len(value)) },
		ExpiryCalculator: otter.ExpiryWriting[string, []byte](time.Hour),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cache.StopAllGoroutines() })
	var flights singleflight.Group
	return local{
		get: func(_ context.Context, key string, value []byte) ([]byte, error) {
			if got, there := cache.GetIfPresent(key); there {
				return got, nil
			}
			got, err, _ := flights.Do(key, func() (any, error) {
				cache.Set(key, value)
				return value, nil
			})
			return got.([]byte), err
		},
		update: func(_ context.Context, key string) error {
			cache.Invalidate(key)
			flights.Forget(key)
			return nil
		},
	}
}

// BenchmarkWithoutRedis has one caller hit, miss and write, and 64 callers read 10,000 keys.
func BenchmarkWithoutRedis(b *testing.B) {
	value := scenario.ValueOf("key", valueSize)
	for _, l := range locals {
		b.Run("hit/"+l.name, func(b *testing.B) {
			c := l.open(b)
			for b.Loop() {
				if _, err := c.get(b.Context(), "key", value); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("miss/"+l.name, func(b *testing.B) {
			c := l.open(b)
			for i := 0; b.Loop(); i++ {
				if _, err := c.get(b.Context(), "key:"+strconv.Itoa(i), value); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("write/"+l.name, func(b *testing.B) {
			c := l.open(b)
			for b.Loop() {
				if err := c.update(b.Context(), "key"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("hit of 64 callers/"+l.name, func(b *testing.B) { readAll(b, 10_000, l.open(b).get) })
		b.Run("bytes an entry/"+l.name, func(b *testing.B) { weigh(b, l.open(b)) })
	}
}

// weigh reports what an entry takes of the heap.
func weigh(b *testing.B, c local) {
	const entries = 50_000
	before := heap()
	for b.Loop() {
		for i := range entries {
			if _, err := c.get(b.Context(), "key:"+strconv.Itoa(i), scenario.ValueOf("key", valueSize)); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(heap()-before)/entries, "B/entry")
	runtime.KeepAlive(c)
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

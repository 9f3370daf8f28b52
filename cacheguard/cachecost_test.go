//go:build !race

package cacheguard

import (
	"context"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// costs are a Cache and the same Get, on a Guard that has the value.
func costs(tb testing.TB, cfg Config) (plain, named func()) {
	tb.Helper()
	ctx := context.Background()
	g, err := New(shared.Client(tb), cfg)
	expect.Must(tb, err)
	tb.Cleanup(func() { _ = g.Close() }) // always nil
	c, err := NewCache(g, CacheConfig[int64, []byte]{
		Name: "product", Load: func(context.Context, int64) ([]byte, error) { return make([]byte, 1024), nil },
	})
	expect.Must(tb, err)
	load := func(context.Context) ([]byte, error) { return make([]byte, 1024), nil }
	plain = func() {
		if _, err := Get(ctx, g, "aproduct:4242", load); err != nil {
			tb.Fatal(err)
		}
	}
	named = func() {
		if _, err := c.Get(ctx, 4242); err != nil {
			tb.Fatal(err)
		}
	}
	plain()
	named()
	redistest.Await(tb, "it is stored", func() bool { return g.flights.Count(nil).Published == 0 })
	if g.local != nil {
		redistest.Await(tb, "it is in the tier", func() bool {
			plain()
			named()
			return g.local.Get("product:4242") != nil && g.local.Get("aproduct:4242") != nil
		})
	}
	return plain, named
}

func TestAHitOfACacheCostsOneAllocationMoreThanAGetAndTwoForItsEpoch(t *testing.T) {
	for name, local := range map[string]LocalConfig{"redis": {}, "local": {MaxEntries: 10}} {
		more := 1.0
		if name == "redis" {
			more = 3 // the epoch of the kind, and its key in the request
		}
		plain, named := costs(t, Config{Prefix: "cost-" + name, Local: local})
		least := func(f func()) float64 { // of some, as other goroutines allocate, too
			fewest := testing.AllocsPerRun(200, f)
			for range 4 {
				fewest = min(fewest, testing.AllocsPerRun(200, f))
			}
			return fewest
		}
		a, b := least(plain), least(named)
		t.Logf("%s: Get %v, Cache %v", name, a, b)
		expect.Equal(t, name+": no more than that", b <= a+more, true)
	}
}

func BenchmarkCacheHit(b *testing.B) {
	for name, local := range map[string]LocalConfig{"redis": {}, "local": {MaxEntries: 10}} {
		plain, named := costs(b, Config{Prefix: "bench-" + name, Local: local})
		for kind, f := range map[string]func(){"Get": plain, "Cache": named} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
	}
}

package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/refresh"
)

// BenchmarkNightlyFeed counts the callers that wait for a load while a feed invalidates 10,000 rows, 100 at a time,
// within ten seconds (1,000 in one with -short), and 64 callers on four instances ask for the rows, the popular ones
// mostly: with package refresh, and without. A load takes 5 ms.
func BenchmarkNightlyFeed(b *testing.B) {
	for name, refreshes := range map[string]bool{"refresh": true, "without": false} {
		b.Run(name, func(b *testing.B) {
			const guards, batch, callers = 4, 100, 64
			rows := 10_000
			if testing.Short() {
				rows = 1_000
			}
			var loads, waited, gets atomic.Int64
			caches := make([]*cacheguard.Cache[int, int], guards)
			for i := range caches {
				caches[i] = refreshed(b, refreshes, &loads, &waited)
			}
			popular := func(caller *rand.Rand) int {
				return int(caller.Float64() * caller.Float64() * caller.Float64() * float64(rows))
			}
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					random := rand.New(rand.NewPCG(uint64(i), 0))
					for ctx.Err() == nil {
						if _, err := caches[i%guards].Get(b.Context(), popular(random)); err != nil {
							b.Error(err)
						}
						gets.Add(1)
						<-time.After(time.Millisecond)
					}
				})
			}
			<-time.After(time.Duration(rows) * time.Millisecond / 2) // most are cached
			loads.Store(0)
			waited.Store(0)
			gets.Store(0)
			for first := 0; first < rows; first += batch {
				ids := make([]int, batch)
				for i := range ids {
					ids[i] = first + i
				}
				if err := caches[0].Invalidate(b.Context(), ids...); err != nil {
					b.Fatal(err)
				}
				<-time.After(batch * time.Millisecond)
			}
			cancel()
			all.Wait()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(gets.Load()), "gets")
			b.ReportMetric(float64(waited.Load()), "waited")
			b.ReportMetric(float64(loads.Load()), "loads")
		})
	}
}

// refreshed is a Cache of an instance, with a Refresher or without.
func refreshed(b *testing.B, refreshes bool, loads, waited *atomic.Int64) *cacheguard.Cache[int, int] {
	b.Helper()
	cfg := cacheguard.Config{
		Local: cacheguard.LocalConfig{MaxBytes: 16 << 20, TTL: time.Minute},
		Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventGet, func(_ context.Context, e cacheguard.Event) {
			if e.Outcome == cacheguard.Loaded || e.Outcome == cacheguard.Shared {
				waited.Add(1)
			}
		})},
	}
	r, err := refresh.New(refresh.Config[int]{Kind: "row", OnError: func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	if refreshes {
		cfg.Observers = append(cfg.Observers, r)
	}
	c, err := cacheguard.NewCache(newGuard(b, client(b), cfg).Guard, cacheguard.CacheConfig[int, int]{Name: "row", Load: func(_ context.Context, id int) (int, error) {
		loads.Add(1)
		<-time.After(5 * time.Millisecond)
		return id, nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx, c) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	})
	return c
}

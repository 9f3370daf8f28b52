package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
)

// BenchmarkUpdate compares Update with Invalidate after the write, which keeps a smaller promise, and with DEL after the
// write, which keeps none. The write itself costs nothing. They take turns, a hundred each, so that a slow moment of the
// machine is one for all.
func BenchmarkUpdate(b *testing.B) {
	const batch, key = 100, "update"
	rdb := client(b)
	g := newGuard(b, rdb, cacheguard.Config{})
	_, c := namedCache(b, rdb, cacheguard.Config{}, 0)
	ctx := b.Context()
	ways := []struct {
		name  string
		write func() error
	}{
		{"update", func() error { return g.Update(ctx, key, func(context.Context) error { return nil }) }},
		{"put", func() error { return c.Put(ctx, 1, loadValue) }},
		{"invalidate", func() error { return g.Invalidate(ctx, key) }},
		{"del", func() error { return rdb.Del(ctx, key).Err() }},
	}
	times := make([][]time.Duration, len(ways))
	requests := make([]int64, len(ways))
	n := 0
	for b.Loop() {
		for i, way := range ways {
			if err := way.write(); err != nil { // the first knows no scripts
				b.Fatal(err)
			}
			before := shared.Reads()
			for range batch {
				start := time.Now()
				err := way.write()
				times[i] = append(times[i], time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
			}
			requests[i] += shared.Reads() - before
		}
		n += batch
	}
	b.ReportMetric(0, "ns/op")
	for i, way := range ways {
		slices.Sort(times[i])
		b.ReportMetric(float64(percentile(times[i], 50))/1e3, way.name+"-p50-µs")
		b.ReportMetric(float64(requests[i])/float64(n), way.name+"-requests")
	}
}

// BenchmarkHitBesideUpdate reads a key that was updated, in a Guard that is updating another key and in one that is not.
// A hit is one GET in both. They take turns.
func BenchmarkHitBesideUpdate(b *testing.B) {
	const key = "read"
	idle, busy := newGuard(b, client(b), cacheguard.Config{}), newGuard(b, client(b), cacheguard.Config{})
	want := scenario.ValueOf(key, valueSize)
	if err := busy.Update(b.Context(), key, func(context.Context) error { return nil }); err != nil {
		b.Fatal(err)
	}
	_, err := busy.Get(b.Context(), key, func(context.Context) ([]byte, error) { return want, nil })
	if err != nil {
		b.Fatal(err)
	}
	begun, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // owner: the benchmark; stop: done; joined below
		ended <- busy.Update(b.Context(), "written", func(context.Context) error {
			close(begun)
			<-done
			return nil
		})
	}()
	<-begun
	var idleTimes, busyTimes []time.Duration
	before := shared.Reads()
	for b.Loop() {
		idleTimes = timed(b, idleTimes, func() error { return readGuarded(b.Context(), idle.Guard, key, want) })
		busyTimes = timed(b, busyTimes, func() error { return readGuarded(b.Context(), busy.Guard, key, want) })
	}
	requests := shared.Reads() - before
	close(done)
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	hits := len(idleTimes) + len(busyTimes)
	slices.Sort(idleTimes)
	slices.Sort(busyTimes)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(percentile(idleTimes, 50))/1e3, "idle-p50-µs")
	b.ReportMetric(float64(percentile(busyTimes, 50))/1e3, "busy-p50-µs")
	b.ReportMetric(float64(requests)/float64(hits), "requests/hit")
}

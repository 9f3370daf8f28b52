package bench

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// BenchmarkSteady makes visitors ask for keys that expire all the time and are slow to rebuild, and at the same time as many others for
// keys that do not expire. One iteration is a run of five seconds.
func BenchmarkSteady(b *testing.B) {
	var all steadyFigures
	for b.Loop() {
		all.add(runSteady(b))
	}
	all.report(b)
}

func runSteady(b *testing.B) (expiring, plain *traffic) {
	const keys, length = 20, 5 * time.Second
	expiring = newTraffic(b, client(b), "expiring", keys, cacheguard.Config{TTL: trafficTTL, StaleFor: trafficStale})
	plain = newTraffic(b, client(b), "plain", keys, cacheguard.Config{})
	ctx, cancel := context.WithTimeout(b.Context(), length)
	defer cancel()
	var both sync.WaitGroup
	for _, t := range []*traffic{expiring, plain} {
		both.Go(func() { t.run(ctx) }) // owner: runSteady; stop: ctx; joined below
	}
	both.Wait()
	expiring.requireAnswers(b)
	plain.requireAnswers(b)
	return expiring, plain
}

// steadyFigures collects runs.
type steadyFigures struct {
	rebuilds, waited         []float64
	p50, p99, hit50, hit99   []float64 // milliseconds from when a Get was due
	ratio, ratioOnceBegun    []float64
	slowest, slowestPlainHit []float64
}

func (f *steadyFigures) add(expiring, plain *traffic) {
	f.rebuilds = append(f.rebuilds, float64(expiring.db.loads()-len(expiring.keys)))
	f.waited = append(f.waited, float64(expiring.waited()))
	due, begun := expiring.times()
	hitDue, hitBegun := plain.times()
	f.p50 = append(f.p50, millis(percentile(due, 50)))
	f.p99 = append(f.p99, millis(percentile(due, 99)))
	f.hit50 = append(f.hit50, millis(percentile(hitDue, 50)))
	f.hit99 = append(f.hit99, millis(percentile(hitDue, 99)))
	f.ratio = append(f.ratio, ratio(due, hitDue))
	f.ratioOnceBegun = append(f.ratioOnceBegun, ratio(begun, hitBegun))
	f.slowest = append(f.slowest, millis(percentile(due, 100)))
	f.slowestPlainHit = append(f.slowestPlainHit, millis(percentile(hitDue, 100)))
}

// ratio returns the ratio of the 99th percentiles.
func ratio(a, b []time.Duration) float64 {
	return float64(percentile(a, 99)) / float64(percentile(b, 99))
}

func (f *steadyFigures) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // the length of a run
	b.ReportMetric(mean(f.rebuilds), "rebuilds")
	b.ReportMetric(mean(f.waited), "waited")
	b.ReportMetric(median(f.p50), "p50-ms")
	b.ReportMetric(median(f.p99), "p99-ms")
	b.ReportMetric(median(f.slowest), "longest-ms")
	b.ReportMetric(median(f.hit50), "hit-p50-ms")
	b.ReportMetric(median(f.hit99), "hit-p99-ms")
	b.ReportMetric(median(f.slowestPlainHit), "hit-longest-ms")
	b.ReportMetric(median(f.ratio), "p99-ratio")
	b.ReportMetric(median(f.ratioOnceBegun), "p99-ratio-once-begun")
	if mean(f.waited) > 0 {
		b.Errorf("Gets that waited for a rebuild: %v", f.waited)
	}
}

// waited is how many Gets waited for a load.
func (t *traffic) waited() (n int) {
	for _, v := range t.visits {
		if v.outcome != cacheguard.Hit && v.outcome != cacheguard.Stale {
			n++
		}
	}
	return n
}

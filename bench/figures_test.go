package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
)

// The stampede of BenchmarkLateCallers and BenchmarkTakeover.
const (
	instances = 8
	callers   = 128 // of each instance
	rebuild   = 50 * time.Millisecond
)

// figures collects stampedes. Times are reported as medians, since one stampede in a noisy neighbourhood should not
// speak for the others; counts as means, since every request counts.
type figures struct {
	loads, requests, commands []float64
	p50, p99                  []float64 // milliseconds
}

// stampede runs one on a key of its own.
func (f *figures) stampede(b *testing.B, s *server.Server, askers []rivals.Cache) *scenario.Stampede {
	b.Helper()
	was, err := scenario.RunStampede(b.Context(), s, askers, rebuild)
	if err != nil {
		b.Fatal(err)
	}
	f.loads = append(f.loads, float64(was.Loads))
	f.requests = append(f.requests, float64(was.Spent.Requests))
	f.commands = append(f.commands, float64(was.Spent.Total()))
	slices.Sort(was.Answers)
	f.p50 = append(f.p50, millis(percentile(was.Answers, 50)))
	f.p99 = append(f.p99, millis(percentile(was.Answers, 99)))
	return was
}

func (f *figures) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // mostly the rebuild
	b.ReportMetric(mean(f.loads), "loads/stampede")
	b.ReportMetric(median(f.p50), "p50-ms")
	b.ReportMetric(median(f.p99), "p99-ms")
	b.ReportMetric(mean(f.requests), "requests/stampede")
	b.ReportMetric(median(f.requests), "requests-median")
	b.ReportMetric(mean(f.commands), "commands/stampede")
}

// calm is the share of stampedes with at most one request more than the least that cacheguard needs: for each instance
// a read and an acquire, and one fill.
func (f *figures) calm() float64 {
	calm := 0
	for _, n := range f.requests {
		if n <= 2*instances+2 {
			calm++
		}
	}
	return float64(calm) / float64(len(f.requests))
}

// counter counts what the shared server does.
func counter(b *testing.B) *server.Server {
	s := server.Of(shared)
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// percentile is of sorted times.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)-1)*p/100]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mean(xs []float64) (m float64) {
	for _, x := range xs {
		m += x / float64(len(xs))
	}
	return m
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}

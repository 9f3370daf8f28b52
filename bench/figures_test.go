package bench

import (
	"slices"
	"testing"
	"time"
)

// spending is what the server was asked to do.
type spending struct {
	requests int64            // reads from clients: round trips, as the server sees them
	commands map[string]int64 // by name, those inside scripts included
}

func countNow() spending {
	return spending{requests: shared.Reads(), commands: shared.Commands()}
}

func (s spending) since(before spending) spending {
	did := spending{requests: s.requests - before.requests, commands: make(map[string]int64)}
	for name, calls := range s.commands {
		if n := calls - before.commands[name]; n > 0 {
			did.commands[name] = n
		}
	}
	return did
}

func (s spending) total() (commands int64) {
	for _, calls := range s.commands {
		commands += calls
	}
	return commands
}

// figures collects stampedes. Times are reported as medians, since one stampede in a noisy neighbourhood should not
// speak for the others; counts as means, since every request counts.
type figures struct {
	loads, requests, commands []float64
	p50, p99                  []float64 // milliseconds
}

func (f *figures) add(s *stampede) {
	f.loads = append(f.loads, float64(s.loads.Load()))
	f.requests = append(f.requests, float64(s.spent.requests))
	f.commands = append(f.commands, float64(s.spent.total()))
	delays := s.delays()
	f.p50 = append(f.p50, millis(percentile(delays, 50)))
	f.p99 = append(f.p99, millis(percentile(delays, 99)))
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

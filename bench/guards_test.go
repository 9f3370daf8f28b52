package bench

import (
	"testing"

	"github.com/cacheguard/go/cacheguard"
)

// BenchmarkThousandGuards has 1,000 Guards of one process on one client ask at once for a key that nobody has.
func BenchmarkThousandGuards(b *testing.B) {
	const guards = 1000
	rdb := client(b)
	askers := make([]cache, guards)
	for i := range askers {
		askers[i] = newGuard(b, rdb, cacheguard.Config{})
	}
	warmUp(b, askers, 1) // they share one inbox
	var all figures
	for b.Loop() {
		all.add(measure(b, askers))
	}
	all.report(b)
	b.ReportMetric(mean(all.requests)/guards, "requests/instance")
	b.ReportMetric(mean(all.commands)/guards, "commands/instance")
}

package bench

import (
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// shared is the one server that everything is measured on.
var shared *redistest.Server

func TestMain(m *testing.M) {
	distance.Main()
	s, stop, err := redistest.StartForMain()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = s
	logging.Disable() // of go-redis, which reports every connection that is refused in an outage
	code := m.Run()
	stop()
	os.Exit(code)
}

// BenchmarkThousandGuards makes 1,000 Guards of one process on one client ask at once for a key that nobody has.
func BenchmarkThousandGuards(b *testing.B) {
	const guards = 1000
	rdb, redis := client(b), counter(b)
	askers := make([]rivals.Cache, guards)
	for i := range askers {
		askers[i] = newGuard(b, rdb, cacheguard.Config{})
	}
	if err := scenario.WarmUp(b.Context(), redis, askers, 1); err != nil { // they share one inbox
		b.Fatal(err)
	}
	var all figures
	for b.Loop() {
		all.stampede(b, redis, askers)
	}
	all.report(b)
	b.ReportMetric(mean(all.requests)/guards, "requests/instance")
	b.ReportMetric(mean(all.commands)/guards, "commands/instance")
}

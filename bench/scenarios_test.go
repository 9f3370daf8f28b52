package bench

import (
	"flag"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
)

// These are scenarios of cmd/compare in a form that benchstat reads. That command describes what they do.

func BenchmarkStampede(b *testing.B)        { runScenarios(b, "^stampede: 8 × 128 callers, rebuild 50ms") }
func BenchmarkHit(b *testing.B)             { runScenarios(b, "^hits: (1 key|10,000 keys), 64 callers, 1 KiB") }
func BenchmarkLoneCaller(b *testing.B)      { runScenarios(b, "^lone:") }
func BenchmarkLoneMiss(b *testing.B)        { runScenarios(b, "^lone miss") }
func BenchmarkLockUncontended(b *testing.B) { runScenarios(b, "^lock, uncontended") }
func BenchmarkHandOver(b *testing.B)        { runScenarios(b, "^lock, contended: hand-over") }
func BenchmarkLockCrowd(b *testing.B)       { runScenarios(b, "^lock, contended: 64") }
func BenchmarkReadMostly(b *testing.B)      { runScenarios(b, "^read-write lock: 95") }
func BenchmarkInvalidated(b *testing.B)     { runScenarios(b, "^invalidation") }
func BenchmarkHTTPStampede(b *testing.B)    { runScenarios(b, "^HTTP, stampede") }
func BenchmarkHTTPHit(b *testing.B)         { runScenarios(b, "^HTTP, hits: .*ServeHTTP") }
func BenchmarkHTTPServerHit(b *testing.B)   { runScenarios(b, "^HTTP, hits: .*net/http") }
func BenchmarkHTTPOverhead(b *testing.B)    { runScenarios(b, "^HTTP, lone") }

// each is what is timed in an iteration.
const each = 300 * time.Millisecond

// runScenarios runs the cases that match, each by itself: one iteration is one round of compare. It reports medians of
// the rounds. At
// -benchtime=1x, which only sees that all works, a slow case has one rival, as in a smoke run of compare, and a crowd at a lock none: the one
// that it would have takes eleven seconds.
func runScenarios(b *testing.B, which string) {
	match, once := regexp.MustCompile(which), flag.Lookup("test.benchtime").Value.String() == "1x"
	s := server.Of(shared)
	b.Cleanup(func() { _ = s.Close() })
	for _, sc := range scenario.All() {
		for _, c := range sc.Cases {
			if !match.MatchString(sc.Name + ": " + c.Name) {
				continue
			}
			crowd := once && strings.HasPrefix(c.Name, "64 contenders")
			for _, e := range c.With(func(e scenario.Entry) bool { return !crowd || strings.HasPrefix(e.Name, "mutex") }, once) {
				b.Run(c.Name+"/"+e.Name, func(b *testing.B) { runEntry(b, sc, e, scenario.Env{Redis: s, For: each}) })
			}
		}
	}
}

func runEntry(b *testing.B, sc scenario.Scenario, e scenario.Entry, env scenario.Env) {
	all := make(map[string][]float64)
	for b.Loop() {
		figures, err := e.Run(b.Context(), env)
		if err != nil {
			b.Fatal(err)
		}
		for name, x := range figures {
			all[name] = append(all[name], x)
		}
	}
	b.ReportMetric(0, "ns/op") // the length of a round
	for _, m := range sc.Metrics {
		if len(all[m.Name]) > 0 {
			b.ReportMetric(median(all[m.Name]), unitOf(m))
		}
	}
}

// unitOf is a metric as the testing package wants it.
func unitOf(m scenario.Metric) string {
	name := strings.NewReplacer(" ", "-", ",", "").Replace(m.Name)
	switch {
	case m.Unit == "":
		return name
	case strings.HasPrefix(m.Unit, "/"):
		return name + m.Unit
	}
	return name + "-" + m.Unit
}

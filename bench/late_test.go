package bench

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
)

// BenchmarkLateCallers looks inside the stampede on cacheguard: how many callers came after their instance had asked for the lease, so that
// its reply does not answer them, and what that costs. It does so for two orders in which callers start; the second stretches the arrivals
// at each instance over many round trips.
func BenchmarkLateCallers(b *testing.B) {
	b.Run("by instance", func(b *testing.B) {
		late(b, func(caches []rivals.Cache) []rivals.Cache { return scenario.ByInstance(caches, callers) })
	})
	b.Run("in turns", func(b *testing.B) {
		late(b, func(caches []rivals.Cache) []rivals.Cache { return slices.Repeat(caches, callers) })
	})
}

func late(b *testing.B, order func([]rivals.Cache) []rivals.Cache) {
	b.Helper()
	var hits [instances]atomic.Int64
	caches := make([]rivals.Cache, instances)
	for i := range caches {
		caches[i] = newGuard(b, client(b), cacheguard.Config{Hooks: cacheguard.Hooks{OnGet: countHits(&hits[i])}})
	}
	askers := order(caches)
	redis := counter(b)
	if err := scenario.WarmUp(b.Context(), redis, askers, instances-1); err != nil {
		b.Fatal(err)
	}
	var calls, reads, firstReads []float64
	var all figures
	for b.Loop() {
		for i := range hits {
			hits[i].Store(0)
		}
		s := all.stampede(b, redis, askers)
		late, at := sum(hits[:])
		calls, reads = append(calls, late), append(reads, at)
		did := s.Spent.Commands
		acquires := did["evalsha"] - s.Loads // the others are fills; each acquire runs a GET of its own
		firstReads = append(firstReads, float64(did["get"]-acquires)-at)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(all.calm(), "calm-share")
	b.ReportMetric(mean(calls), "late-callers/stampede")
	b.ReportMetric(mean(reads), "late-reads/stampede") // the late callers of an instance share one
	b.ReportMetric(mean(firstReads), "first-reads/stampede")
	b.ReportMetric(mean(all.requests), "requests/stampede")
}

// countHits counts the callers that a read answered.
func countHits(n *atomic.Int64) func(context.Context, string, cacheguard.Outcome, time.Duration, error) {
	return func(_ context.Context, _ string, outcome cacheguard.Outcome, _ time.Duration, _ error) {
		if outcome == cacheguard.Hit {
			n.Add(1)
		}
	}
}

// sum adds the hits up, and counts the instances that had any.
func sum(hits []atomic.Int64) (calls, at float64) {
	for i := range hits {
		n := hits[i].Load()
		calls += float64(n)
		at += float64(min(n, 1))
	}
	return calls, at
}

package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
)

// BenchmarkHotKeyInTransactions is a crowd of 1,000 transactions of 2 ms on one key, which 64 callers read all the time, in two processes' Guards:
// with intents, 8 at a time, and with Update, which takes one at a time. A load takes 1 ms.
func BenchmarkHotKeyInTransactions(b *testing.B) {
	const transactions, writers, readers, long, load = 1000, 8, 64, 2 * time.Millisecond, time.Millisecond
	ways := map[string]func(context.Context, *cacheguard.Guard) error{
		"intend": func(ctx context.Context, g *cacheguard.Guard) error {
			in, err := g.Intend(ctx, cacheguard.Changes{Keys: []string{"hot"}})
			if err != nil {
				return err
			}
			<-time.After(long)
			return in.Done(ctx)
		},
		"update": func(ctx context.Context, g *cacheguard.Guard) error {
			return g.Update(ctx, "hot", func(context.Context) error {
				<-time.After(long)
				return nil
			})
		},
		"nobody writes": func(context.Context, *cacheguard.Guard) error {
			<-time.After(long)
			return nil
		},
	}
	for name, write := range ways {
		b.Run(name, func(b *testing.B) {
			guards := []*cacheguard.Guard{newGuard(b, client(b), cacheguard.Config{}).Guard, newGuard(b, client(b), cacheguard.Config{}).Guard}
			hotKey(b, guards, writers, readers, transactions/10, load, write) // connections, scripts, subscriptions
			all, loads, took := hotKey(b, guards, writers, readers, transactions, load, write)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(percentile(all, 50))/1e6, "p50-ms")
			b.ReportMetric(float64(percentile(all, 99))/1e6, "p99-ms")
			b.ReportMetric(float64(loads)/took.Seconds(), "loads/s")
			b.ReportMetric(float64(len(all))/took.Seconds(), "gets/s")
			b.ReportMetric(took.Seconds(), "s")
		})
	}
}

// hotKey returns how long Gets took, sorted, while so many transactions were made, how many loads there were, and how long all took.
func hotKey(
	b *testing.B, guards []*cacheguard.Guard, writers, readers, transactions int, load time.Duration,
	write func(context.Context, *cacheguard.Guard) error,
) (all []time.Duration, loads int64, took time.Duration) {
	b.Helper()
	var counted, left atomic.Int64
	left.Store(int64(transactions))
	ctx, cancel := context.WithCancel(b.Context())
	times := make([][]time.Duration, readers)
	var reading, writing sync.WaitGroup
	for i := range readers {
		reading.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				_, err := cacheguard.Get(context.Background(), guards[i%2], "hot", func(context.Context) (int, error) {
					counted.Add(1)
					<-time.After(load)
					return 1, nil
				})
				if err != nil {
					b.Error(err)
				}
				times[i] = append(times[i], time.Since(start))
			}
		})
	}
	began := time.Now()
	for i := range writers {
		writing.Go(func() {
			for left.Add(-1) >= 0 {
				if err := write(context.Background(), guards[i%2]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	writing.Wait()
	took = time.Since(began)
	cancel()
	reading.Wait()
	all = slices.Concat(times...)
	slices.Sort(all)
	return all, counted.Load(), took
}

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
		caches[i] = newGuard(b, client(b), cacheguard.Config{Observers: []cacheguard.Observer{countHits(&hits[i])}})
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
func countHits(n *atomic.Int64) cacheguard.Observer {
	return cacheguard.On(cacheguard.EventGet, func(_ context.Context, e cacheguard.Event) {
		if e.Outcome == cacheguard.Hit {
			n.Add(1)
		}
	})
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

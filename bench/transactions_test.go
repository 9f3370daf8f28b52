package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

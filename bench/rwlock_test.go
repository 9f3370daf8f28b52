package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/rwlock"
)

func newRWLocks(b *testing.B, n int, ttl time.Duration) (nodes []*rwlock.Locker) {
	b.Helper()
	for range n {
		k, err := rwlock.New(client(b), rwlock.Config{Prefix: "bench", TTL: ttl})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = k.Close() })
		nodes = append(nodes, k)
	}
	return nodes
}

// BenchmarkCrowdOfReaders makes one more reader come and go while that many others hold the lock, and reports what the server spends on
// each of the two requests.
func BenchmarkCrowdOfReaders(b *testing.B) {
	for _, crowd := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprint(crowd, " readers"), func(b *testing.B) {
			nodes := newRWLocks(b, 2, time.Hour)
			err := scenario.Together(b.Context(), 32, func(ctx context.Context, i int) error {
				for range crowd / 32 {
					if _, err := nodes[0].RLock(ctx, b.Name()); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			began, calls := serverTime(b)
			for b.Loop() {
				l, err := nodes[1].RLock(b.Context(), b.Name())
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			ended, after := serverTime(b)
			b.ReportMetric(float64(ended-began)/float64(after-calls), "server-µs/request")
		})
	}
}

// serverTime is how long the server has run scripts, in µs, and how many.
func serverTime(b *testing.B) (micros, calls int64) {
	b.Helper()
	for field := range strings.SplitSeq(shared.Info("commandstats")["cmdstat_evalsha"], ",") {
		name, value, _ := strings.Cut(field, "=")
		n, _ := strconv.ParseInt(value, 10, 64) // only whole numbers matter
		switch name {
		case "usec":
			micros = n
		case "calls":
			calls = n
		}
	}
	return micros, calls
}

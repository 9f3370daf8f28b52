package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
)

const (
	rwCallers = 32
	rwNodes   = 4                    // processes that the callers are spread over
	rwHeldFor = 2 * time.Millisecond // by readers and writers alike
)

// BenchmarkReadMostly has 32 callers in 4 instances take one lock, 95 % of them to read, and hold it for 2 ms. With a
// mutex the readers take turns, too.
func BenchmarkReadMostly(b *testing.B) {
	b.Run("rwlock", func(b *testing.B) {
		nodes := newRWLocks(b, rwNodes, lockTTL)
		readMostly(b, func(ctx context.Context, i int, read bool, f func()) error {
			how := (*rwlock.Locker).Do
			if read {
				how = (*rwlock.Locker).RDo
			}
			return how(nodes[i%rwNodes], ctx, b.Name(), func(context.Context, *rwlock.Lease) error {
				f()
				return nil
			})
		})
	})
	b.Run("mutex", func(b *testing.B) {
		var nodes []*mutex.Locker
		for range rwNodes {
			nodes = append(nodes, newMutex(b, mutex.Config{}).(mutexLocker).Locker)
		}
		readMostly(b, func(ctx context.Context, i int, _ bool, f func()) error {
			return nodes[i%rwNodes].Do(ctx, b.Name(), func(context.Context, *mutex.Lease) error {
				f()
				return nil
			})
		})
	})
}

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

// readMostly has the callers share b.N turns.
func readMostly(b *testing.B, do func(ctx context.Context, caller int, read bool, f func()) error) {
	b.Helper()
	var turns atomic.Int64
	before := countNow()
	b.ResetTimer()
	err := together(b.Context(), rwCallers, func(ctx context.Context, i int) error {
		for {
			turn := turns.Add(1)
			if turn > int64(b.N) {
				return nil
			}
			if err := do(ctx, i, turn%20 != 0, func() { <-time.After(rwHeldFor) }); err != nil {
				return err
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	spent := countNow().since(before)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "locks/s")
	b.ReportMetric(float64(spent.requests)/float64(b.N), "requests/lock")
	b.ReportMetric(float64(spent.total())/float64(b.N), "commands/lock")
}

// BenchmarkCrowdOfReaders has one more reader come and go while so many others hold the lock, and reports what the server
// spends on each of the two requests.
func BenchmarkCrowdOfReaders(b *testing.B) {
	for _, crowd := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprint(crowd, " readers"), func(b *testing.B) {
			nodes := newRWLocks(b, 2, time.Hour)
			err := together(b.Context(), 32, func(ctx context.Context, i int) error {
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

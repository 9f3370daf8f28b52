package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

const takeoverLease = 500 * time.Millisecond

// TestHolder is the process that BenchmarkTakeover kills while it holds a lease. By itself it has nothing to test.
func TestHolder(t *testing.T) {
	if !redistest.IsChild(t) {
		return
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	g, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "takeover", LeaseTTL: takeoverLease})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cacheguard.Get(context.Background(), g, os.Getenv("KEY"), func(ctx context.Context) ([]byte, error) {
		fmt.Println("loading")
		<-ctx.Done()
		return nil, ctx.Err()
	})
	t.Fatal("not killed: ", err)
}

// BenchmarkTakeover kills a process that holds a lease while 8 others wait, and measures how long after the end of the
// lease, by the server's clock, the load of its replacement begins.
func BenchmarkTakeover(b *testing.B) {
	var loads atomic.Int64
	var late []float64
	rdb := client(b)
	guards := make([]*cacheguard.Guard, instances)
	for i := range guards {
		g, err := cacheguard.New(client(b), cacheguard.Config{Prefix: "takeover", LeaseTTL: takeoverLease})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = g.Close() })
		guards[i] = g
	}
	for round := 0; b.Loop(); round++ {
		key := fmt.Sprint("k", round)
		child := redistest.Child(b, "TestHolder", "ADDR="+shared.Addr(), "KEY="+key)
		ctx, cancel := context.WithTimeout(b.Context(), tooLong)
		if _, err := child.ReadLine(ctx); err != nil {
			b.Fatal(err)
		}
		lease := "takeover:{" + key + "}:lease"
		began := make(chan time.Time, instances)
		done := make(chan error, 1)
		go func() { // owner: the benchmark; ends with the Gets; joined by receiving
			done <- scenario.Together(ctx, instances, func(ctx context.Context, i int) error {
				_, err := cacheguard.Get(ctx, guards[i], key, func(context.Context) ([]byte, error) {
					loads.Add(1)
					began <- rdb.Time(ctx).Val()
					return []byte("v"), nil
				})
				return err
			})
		}()
		redistest.Await(b, "all wait", func() bool { return registered(ctx, rdb, lease) == instances })
		child.Kill()
		deadline, err := rdb.HGet(ctx, lease, "deadline").Int64()
		if err != nil {
			b.Fatal(err)
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		late = append(late, float64((<-began).Sub(time.UnixMilli(deadline)).Microseconds())/1000)
		cancel()
	}
	b.ReportMetric(float64(loads.Load())/float64(b.N), "loads")
	b.ReportMetric(mean(late), "late-ms")
	b.ReportMetric(slices.Max(late), "latest-ms")
}

// registered counts the processes that wait for a lease.
func registered(ctx context.Context, rdb *redis.Client, lease string) (n int) {
	for _, field := range rdb.HKeys(ctx, lease).Val() {
		if strings.HasPrefix(field, "inbox:") {
			n++
		}
	}
	return n
}

// TestLockHolder is the process that BenchmarkLockTakeover kills while it holds a lock. By itself it has nothing to test.
func TestLockHolder(t *testing.T) {
	if !redistest.IsChild(t) {
		return
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	k, err := mutex.New(rdb, mutex.Config{Prefix: "takeover-lock", TTL: takeoverLease})
	if err != nil {
		t.Fatal(err)
	}
	l, err := k.Lock(context.Background(), os.Getenv("KEY"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("locked")
	<-l.Context().Done()
	t.Fatal("not killed: ", context.Cause(l.Context()))
}

// BenchmarkLockTakeover kills a process that holds a lock while 8 others wait, and measures how long after the end of its
// lease, by the server's clock, the next one has the lock.
func BenchmarkLockTakeover(b *testing.B) {
	var late []float64
	rdb := client(b)
	lockers := make([]*mutex.Locker, instances)
	for i := range lockers {
		k, err := mutex.New(client(b), mutex.Config{Prefix: "takeover-lock", TTL: takeoverLease})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = k.Close() })
		lockers[i] = k
	}
	for round := 0; b.Loop(); round++ {
		key := fmt.Sprint("k", round)
		child := redistest.Child(b, "TestLockHolder", "ADDR="+shared.Addr(), "KEY="+key)
		ctx, cancel := context.WithTimeout(b.Context(), tooLong)
		if _, err := child.ReadLine(ctx); err != nil {
			b.Fatal(err)
		}
		taken := make(chan time.Time, instances)
		done := make(chan error, 1)
		go func() { // owner: the benchmark; ends with the locks; joined by receiving
			done <- scenario.Together(ctx, instances, func(ctx context.Context, i int) error {
				return lockers[i].Do(ctx, key, func(ctx context.Context, _ *mutex.Lease) error {
					taken <- rdb.Time(ctx).Val()
					return nil
				})
			})
		}()
		lock := "takeover-lock:{" + key + "}:mutex"
		redistest.Await(b, "all wait", func() bool { return rdb.ZCard(ctx, lock+":queue").Val() == instances })
		child.Kill()
		deadline := leaseEnd(b, rdb.HGet(ctx, lock, "lease").Val())
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		late = append(late, float64((<-taken).Sub(deadline).Microseconds())/1000)
		cancel()
	}
	b.ReportMetric(mean(late), "late-ms")
	b.ReportMetric(slices.Max(late), "latest-ms")
}

// leaseEnd reads the lease of a lock: seconds, microseconds, length in ms.
func leaseEnd(b *testing.B, lease string) time.Time {
	b.Helper()
	var numbers [3]int64
	for i, text := range strings.Fields(lease)[:len(numbers)] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		numbers[i] = n
	}
	return time.Unix(numbers[0], numbers[1]*1000).Add(time.Duration(numbers[2]) * time.Millisecond)
}

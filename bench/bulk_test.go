package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
)

// product is what a page lists by the hundred, and a report by the thousand.
type product struct {
	ID, Name string
	Price    int
}

// bulk is a way to get many keys: each call of next is with keys of its own, or with the same.
type bulk func(b *testing.B, rdb *redis.Client, n int) (prepare func(), do func() error)

func products(_ context.Context, keys []string) (map[string]product, error) {
	all := make(map[string]product, len(keys))
	for i, key := range keys {
		all[key] = product{key, "the product " + key, i}
	}
	return all, nil
}

// bulkCold gets keys that nobody has asked for.
func bulkCold(b *testing.B, rdb *redis.Client, n int) (prepare func(), do func() error) {
	g := countedGuard(b, rdb, cacheguard.Config{})
	var keys []string
	return func() { keys, _ = manyKeys(n) }, func() error { return bulkOf(b, g, keys) }
}

// bulkWarm gets the same keys again, from Redis.
func bulkWarm(b *testing.B, rdb *redis.Client, n int) (prepare func(), do func() error) {
	return bulkAgain(b, rdb, n, cacheguard.Config{})
}

// bulkLocal gets them from the local tier.
func bulkLocal(b *testing.B, rdb *redis.Client, n int) (prepare func(), do func() error) {
	return bulkAgain(b, rdb, n, cacheguard.Config{Local: cacheguard.LocalConfig{MaxBytes: 1 << 30}})
}

func bulkAgain(b *testing.B, rdb *redis.Client, n int, cfg cacheguard.Config) (prepare func(), do func() error) {
	g := countedGuard(b, rdb, cfg)
	keys, _ := manyKeys(n)
	for range 3 { // what is asked for twice is kept
		if err := bulkOf(b, g, keys); err != nil {
			b.Fatal(err)
		}
	}
	return func() {}, func() error { return bulkOf(b, g, keys) }
}

func bulkOf(b *testing.B, g *cacheguard.Guard, keys []string) error {
	b.Helper()
	got, err := cacheguard.GetMany(b.Context(), g, keys, products)
	if err == nil && len(got) != len(keys) {
		err = fmt.Errorf("%d values of %d", len(got), len(keys))
	}
	return err
}

// bulkInvalidate invalidates keys that are there, and that nobody stores any more: who gets them again waits for that.
func bulkInvalidate(b *testing.B, rdb *redis.Client, n int) (prepare func(), do func() error) {
	g := countedGuard(b, rdb, cacheguard.Config{})
	keys, _ := manyKeys(n)
	return func() {
			for range 2 {
				if err := bulkOf(b, g, keys); err != nil {
					b.Fatal(err)
				}
			}
		}, func() error {
			return g.Invalidate(b.Context(), keys...)
		}
}

// byHandCold is what a user would write: one MGET, one load, one pipeline of SETs.
func byHandCold(b *testing.B, rdb *redis.Client, n int) (prepare func(), do func() error) {
	var keys []string
	return func() { _, keys = manyKeys(n) }, func() error { return byHandOf(b, rdb, keys) }
}

func byHandWarm(b *testing.B, rdb *redis.Client, n int) (prepare func(), do func() error) {
	_, keys := manyKeys(n)
	if err := byHandOf(b, rdb, keys); err != nil {
		b.Fatal(err)
	}
	return func() {}, func() error { return byHandOf(b, rdb, keys) }
}

func byHandOf(b *testing.B, rdb *redis.Client, keys []string) error {
	b.Helper()
	read, err := rdb.MGet(b.Context(), keys...).Result()
	if err != nil {
		return err
	}
	got, missing := make(map[string]product, len(keys)), []string(nil)
	for i, v := range read {
		s, found := v.(string)
		if !found {
			missing = append(missing, keys[i])
			continue
		}
		var p product
		if err := json.Unmarshal([]byte(s), &p); err != nil {
			return err
		}
		got[keys[i]] = p
	}
	if len(missing) == 0 {
		return nil
	}
	loaded, err := products(b.Context(), missing)
	pipe := rdb.Pipeline()
	for key, p := range loaded {
		text, _ := json.Marshal(p) // it has no reason to fail
		pipe.Set(b.Context(), key, text, ttl)
		got[key] = p
	}
	_, failed := pipe.Exec(b.Context())
	return errors.Join(err, failed)
}

// bulks are in the order of the table.
var bulks = []struct {
	name string
	bulk
}{
	{"cold", bulkCold},
	{"cold by hand", byHandCold},
	{"warm", bulkWarm},
	{"warm by hand", byHandWarm},
	{"local", bulkLocal},
	{"invalidate", bulkInvalidate},
}

// BenchmarkBulk is what many keys at once cost by key, beside one MGET, json.Unmarshal and one pipeline of SETs by
// hand, on the loopback interface, with a load that takes no time.
func BenchmarkBulk(b *testing.B) {
	for _, way := range bulks {
		sizes := []int{100, 1_000, 10_000}
		if os.Getenv("BULK") == "all" {
			sizes = append(sizes, 50_000, 100_000) // minutes, and gigabytes
		}
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d", way.name, n), func(b *testing.B) {
				rdb := client(b)
				prepare, do := way.bulk(b, rdb, n)
				var before, after runtime.MemStats
				var took, cpu time.Duration
				var allocs, bytes uint64
				for b.Loop() {
					b.StopTimer()
					prepare()
					runtime.ReadMemStats(&before)
					began, used := time.Now(), scenario.ProcessTime()
					b.StartTimer()
					if err := do(); err != nil {
						b.Fatal(err)
					}
					took, cpu = took+time.Since(began), cpu+scenario.ProcessTime()-used
					runtime.ReadMemStats(&after)
					allocs, bytes = allocs+after.Mallocs-before.Mallocs, bytes+after.TotalAlloc-before.TotalAlloc
				}
				keys := float64(b.N * n)
				b.ReportMetric(float64(took)/float64(time.Microsecond)/keys, "us/key")
				b.ReportMetric(float64(cpu)/float64(time.Microsecond)/keys, "cpu-us/key")
				b.ReportMetric(float64(allocs)/keys, "allocs/key")
				b.ReportMetric(float64(bytes)/keys, "B/key")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkGetBesideBulk is how long single Gets of other keys take beside a caller that gets 10,000 keys all the time, with the library or by hand.
func BenchmarkGetBesideBulk(b *testing.B) {
	for _, way := range []struct {
		name string
		bulk
	}{{"nothing", nil}, {"warm", bulkWarm}, {"warm by hand", byHandWarm}, {"cold", bulkCold}, {"cold by hand", byHandCold}} {
		b.Run(way.name, func(b *testing.B) {
			rdb := client(b)
			g := countedGuard(b, rdb, cacheguard.Config{})
			key, _ := manyKeys(1)
			get := getting(b, g, key[0], func(context.Context) ([]byte, error) { return make([]byte, valueSize), nil })
			if err := get(); err != nil {
				b.Fatal(err)
			}
			var end, ended = make(chan struct{}), make(chan struct{})
			calls := 0
			go func() { // owner: the benchmark, which waits for ended
				defer close(ended)
				if way.bulk == nil {
					return
				}
				for prepare, do := way.bulk(b, rdb, 10_000); ; calls++ {
					select {
					case <-end:
						return
					default:
					}
					prepare()
					if err := do(); err != nil {
						b.Error(err)
					}
				}
			}()
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if err := get(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
				time.Sleep(time.Millisecond) //nolint:forbidigo // a visitor a millisecond
			}
			close(end)
			<-ended
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-us")
			b.ReportMetric(float64(calls), "bulks")
		})
	}
}

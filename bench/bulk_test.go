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

	"github.com/dtm-labs/rockscache"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// product is what a page lists by the hundred, and a report by the thousand.
type product struct {
	ID, Name string
	Price    int
}

// bulk is a way to get many keys: each call of next is with keys of its own, or with the same.
type bulk func(b *testing.B, rdb redis.UniversalClient, n int) (prepare func(), do func() error)

func products(_ context.Context, keys []string) (map[string]product, error) {
	all := make(map[string]product, len(keys))
	for i, key := range keys {
		all[key] = product{key, "the product " + key, i}
	}
	return all, nil
}

// bulkCold gets keys that nobody has asked for.
func bulkCold(b *testing.B, rdb redis.UniversalClient, n int) (prepare func(), do func() error) {
	g := countedGuard(b, rdb, cacheguard.Config{})
	var keys []string
	return func() { keys, _ = manyKeys(n) }, func() error { return bulkOf(b, g, keys) }
}

// bulkWarm gets the same keys again, from Redis.
func bulkWarm(b *testing.B, rdb redis.UniversalClient, n int) (prepare func(), do func() error) {
	return bulkAgain(b, rdb, n, cacheguard.Config{})
}

// bulkLocal gets them from the local tier.
func bulkLocal(b *testing.B, rdb redis.UniversalClient, n int) (prepare func(), do func() error) {
	return bulkAgain(b, rdb, n, cacheguard.Config{Local: cacheguard.LocalConfig{MaxBytes: 1 << 30}})
}

func bulkAgain(b *testing.B, rdb redis.UniversalClient, n int, cfg cacheguard.Config) (prepare func(), do func() error) {
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
func bulkInvalidate(b *testing.B, rdb redis.UniversalClient, n int) (prepare func(), do func() error) {
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
func byHandCold(b *testing.B, rdb redis.UniversalClient, n int) (prepare func(), do func() error) {
	var keys []string
	return func() { _, keys = manyKeys(n) }, func() error { return byHandOf(b, rdb, keys) }
}

func byHandWarm(b *testing.B, rdb redis.UniversalClient, n int) (prepare func(), do func() error) {
	_, keys := manyKeys(n)
	if err := byHandOf(b, rdb, keys); err != nil {
		b.Fatal(err)
	}
	return func() {}, func() error { return byHandOf(b, rdb, keys) }
}

func byHandOf(b *testing.B, rdb redis.UniversalClient, keys []string) error {
	b.Helper()
	read, err := readByHand(b.Context(), rdb, keys)
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

// readByHand is one MGET; on a cluster, which has the keys on several nodes, a pipeline of GETs.
func readByHand(ctx context.Context, rdb redis.UniversalClient, keys []string) (read []any, err error) {
	if _, several := rdb.(*redis.ClusterClient); !several {
		return rdb.MGet(ctx, keys...).Result()
	}
	pipe := rdb.Pipeline()
	for _, key := range keys {
		pipe.Get(ctx, key)
	}
	cmds, err := pipe.Exec(ctx)
	for _, cmd := range cmds {
		if text := cmd.(*redis.StringCmd); text.Err() == nil { //nolint:forcetypeassert // of GET
			read = append(read, text.Val())
		} else {
			read = append(read, nil)
		}
	}
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return read, err
}

// newRockscache is for its FetchBatch2, which locks each key.
func newRockscache(b *testing.B, rdb redis.UniversalClient) *rockscache.Client {
	b.Helper()
	if _, several := rdb.(*redis.ClusterClient); several {
		b.Skip("rockscache needs all keys in one slot")
	}
	return rockscache.NewClient(rdb, rockscache.NewDefaultOptions())
}

func rockscacheCold(b *testing.B, rdb redis.UniversalClient, n int) (prepare func(), do func() error) {
	c := newRockscache(b, rdb)
	var keys []string
	return func() { _, keys = manyKeys(n) }, func() error { return rockscacheOf(b, c, keys) }
}

func rockscacheWarm(b *testing.B, rdb redis.UniversalClient, n int) (prepare func(), do func() error) {
	c := newRockscache(b, rdb)
	_, keys := manyKeys(n)
	if err := rockscacheOf(b, c, keys); err != nil {
		b.Fatal(err)
	}
	return func() {}, func() error { return rockscacheOf(b, c, keys) }
}

func rockscacheOf(b *testing.B, c *rockscache.Client, keys []string) error {
	b.Helper()
	got := make(map[int]product, len(keys))
	all, err := c.FetchBatch2(b.Context(), keys, ttl, func(idxs []int) (map[int]string, error) {
		texts := make(map[int]string, len(idxs))
		for _, i := range idxs {
			text, _ := json.Marshal(product{keys[i], "the product " + keys[i], i}) // it has no reason to fail
			texts[i] = string(text)
		}
		return texts, nil
	})
	for i, text := range all {
		var p product
		err = errors.Join(err, json.Unmarshal([]byte(text), &p))
		got[i] = p
	}
	if err == nil && len(got) != len(keys) {
		err = fmt.Errorf("%d values of %d", len(got), len(keys))
	}
	return err
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
	{"cold with rockscache", rockscacheCold},
	{"warm with rockscache", rockscacheWarm},
}

// BenchmarkBulk is what many keys at once cost by key, beside one MGET, json.Unmarshal and one pipeline of SETs by
// hand, on the loopback interface, with a load that takes no time.
func BenchmarkBulk(b *testing.B) {
	sizes := []int{100, 1_000, 10_000}
	if os.Getenv("BULK") == "all" {
		sizes = append(sizes, 50_000, 100_000) // minutes, and gigabytes
	}
	benchmarkBulks(b, func(b *testing.B) redis.UniversalClient { return client(b) }, sizes)
}

// BenchmarkBulkAway is BenchmarkBulk with a round trip.
func BenchmarkBulkAway(b *testing.B) {
	for _, roundTrip := range []time.Duration{300 * time.Microsecond, time.Millisecond} {
		b.Run(roundTrip.String(), func(b *testing.B) { benchmarkBulks(b, awayBy(b, roundTrip), []int{100, 1_000}) })
	}
}

// awayBy opens clients with a round trip.
func awayBy(b *testing.B, roundTrip time.Duration) func(b *testing.B) redis.UniversalClient {
	b.Helper()
	road, err := distance.Apart(shared.Addr(), roundTrip)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = road.Close() })
	return func(b *testing.B) redis.UniversalClient {
		b.Helper()
		rdb := redis.NewClient(&redis.Options{Addr: road.Addr(), PoolSize: poolSize})
		b.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
}

// BenchmarkBulkCluster is BenchmarkBulk on three nodes.
func BenchmarkBulkCluster(b *testing.B) {
	cluster := redistest.StartCluster(b, 0)
	benchmarkBulks(b, func(b *testing.B) redis.UniversalClient {
		return cluster.Client(b, func(o *redis.ClusterOptions) { o.PoolSize = poolSize })
	}, []int{100, 1_000})
}

func benchmarkBulks(b *testing.B, newClient func(*testing.B) redis.UniversalClient, sizes []int) {
	b.Helper()
	for _, way := range bulks {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d", way.name, n), func(b *testing.B) { measureBulk(b, newClient(b), way.bulk, n) })
		}
	}
}

func measureBulk(b *testing.B, rdb redis.UniversalClient, of bulk, n int) {
	b.Helper()
	prepare, do := of(b, rdb, n)
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
}

// BenchmarkGetBesideBulk is how long single Gets of other keys take beside a caller that gets 10,000 keys all the time,
// with the library or by hand.
func BenchmarkGetBesideBulk(b *testing.B) {
	for _, roundTrip := range []time.Duration{0, time.Millisecond} {
		for _, way := range []struct {
			name string
			bulk
		}{{"nothing", nil}, {"warm", bulkWarm}, {"warm by hand", byHandWarm}, {"cold", bulkCold}, {"cold by hand", byHandCold}} {
			b.Run(fmt.Sprintf("%v/%s", roundTrip, way.name), func(b *testing.B) { getBesideBulk(b, awayBy(b, roundTrip)(b), way.bulk) })
		}
	}
}

func getBesideBulk(b *testing.B, rdb redis.UniversalClient, of bulk) {
	b.Helper()
	g := countedGuard(b, rdb, cacheguard.Config{})
	key, _ := manyKeys(1)
	get := getting(b, g, key[0], func(context.Context) ([]byte, error) { return make([]byte, valueSize), nil })
	if err := get(); err != nil {
		b.Fatal(err)
	}
	var end, ended = make(chan struct{}), make(chan struct{})
	var prepare func()
	var do func() error
	if of != nil {
		prepare, do = of(b, rdb, 10_000) // what is to be warm is, before anybody is timed
	}
	calls := 0
	go func() { // owner: the benchmark, which waits for ended
		defer close(ended)
		if of == nil {
			return
		}
		for ; ; calls++ {
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
}

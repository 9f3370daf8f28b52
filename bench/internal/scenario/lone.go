package scenario

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// lone makes one caller read one key, with nobody to share anything with, in turns with a plain GET.
func lone() Scenario {
	return Scenario{
		Name: "lone",
		About: "One caller reads one key, and has nobody to share anything with. Batches (of a hundred on the loopback interface) take turns with as many plain " +
			"GETs of go-redis; \"beside GET\" is the ratio of the medians. One caller has no schedule to keep, so these are times of " +
			"service.",
		Metrics: []Metric{
			{Name: "p50", Unit: "µs", Better: Lower},
			{Name: "p99", Unit: "µs", Better: Lower},
			{Name: "beside GET", Better: Lower, Main: true},
			{Name: "allocations", Better: Lower},
			{Name: "bytes allocated", Better: Lower},
		},
		Cases: []Case{{Name: "1 KiB", Smoke: true, Entries: eachCache(rivals.Caches, runLone)}},
	}
}

func runLone(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	c, err := lib.Open(rivals.Setup{Redis: e.Options(), TTL: Forever})
	if err != nil {
		return nil, err
	}
	rdb := redis.NewClient(e.Options())
	defer func() { err = errors.Join(err, c.Close(), rdb.Close()) }()
	keys, values := newKeys(2, Kibibyte)
	if err := rdb.Set(ctx, keys[1], values[1], Forever).Err(); err != nil {
		return nil, err
	}
	for range 2 {
		if err := Fill(ctx, c, keys[:1], values[:1], 1); err != nil {
			return nil, err
		}
		if err := e.Redis.Calm(ctx); err != nil { // somebody stores in the background
			return nil, err
		}
	}
	mine := turns{batch: e.batch(), took: newTimes(), read: func() error {
		got, err := c.Get(ctx, keys[0], neverLoad)
		return Check(keys[0], got, values[0], err)
	}}
	plain := turns{batch: e.batch(), took: newTimes(), read: func() error {
		got, err := rdb.Get(ctx, keys[1]).Bytes()
		return Check(keys[1], got, values[1], err)
	}}
	if err := errors.Join(plain.take(), mine.take()); err != nil { // connections
		return nil, err
	}
	if err := alternate(&plain, &mine, e.For); err != nil {
		return nil, err
	}
	mallocs, bytes, err := mine.costs()
	return Figures{
		"p50": mine.took.at(50) * 1e3, "p99": mine.took.at(99) * 1e3,
		"beside GET":      mine.took.at(50) / plain.took.at(50),
		"allocations":     mallocs,
		"bytes allocated": bytes,
	}, err
}

// turns is one way to read, whose turns are timed call by call.
type turns struct {
	batch int // calls in a turn
	read  func() error
	took  *times
}

// alternate times the two in turns of a batch, for so long and at least once.
func alternate(a, b *turns, d time.Duration) error {
	a.took, b.took = newTimes(), newTimes()
	for began := time.Now(); a.took.h.TotalCount() == 0 || time.Since(began) < d; {
		if err := errors.Join(a.take(), b.take()); err != nil {
			return err
		}
	}
	return nil
}

func (t *turns) take() error {
	for range t.batch {
		began := time.Now()
		err := t.read()
		t.took.add(time.Since(began))
		if err != nil {
			return err
		}
	}
	return nil
}

// costs is what a read allocates. To ask stops the world, so it is not asked while time counts.
func (t *turns) costs() (mallocs, bytes float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = t.take()
	runtime.ReadMemStats(&after)
	n := float64(t.batch)
	return float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n, err
}

// loneMiss makes one caller ask for one key after the other that nobody has.
func loneMiss() Scenario {
	return Scenario{
		Name: "lone miss",
		About: "One caller asks for one key after the other that nobody has, and whose load takes no time. Batches take turns with as many " +
			"GETs and SETs by hand; \"beside by hand\" is the ratio of the medians. Round trips are how often the p50 has room for one, where " +
			"Redis is a round trip away; requests are by miss.",
		Metrics: []Metric{
			{Name: "p50", Unit: "µs", Better: Lower},
			{Name: "p90", Unit: "µs", Better: Lower},
			{Name: "beside by hand", Better: Lower, Main: true},
			{Name: "round trips", Better: Lower},
			{Name: "requests", Better: Lower},
			{Name: "allocations", Better: Lower},
		},
		Cases: []Case{{Name: "1 KiB", Smoke: true, Entries: eachCache(inRedis(rivals.Caches), runLoneMiss)}},
	}
}

func runLoneMiss(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	setup := rivals.Setup{Redis: e.Options(), TTL: Forever}
	caches, err := openCaches(lib, setup, 1)
	if err != nil {
		return nil, err
	}
	plain, err := openCaches(rivals.PlainGet, setup, 1)
	if err != nil {
		return nil, errors.Join(err, CloseAll(caches))
	}
	defer func() { err = errors.Join(err, CloseAll(append(caches, plain...))) }()
	mine, hand := misses(ctx, caches[0], e.batch()), misses(ctx, plain[0], e.batch())
	if err := errors.Join(hand.take(), mine.take()); err != nil { // connections and scripts
		return nil, err
	}
	if err := alternate(&hand, &mine, e.For); err != nil {
		return nil, err
	}
	before, err := e.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	mallocs, _, err := mine.costs()
	if err := errors.Join(err, e.Redis.Calm(ctx)); err != nil { // somebody stores in the background
		return nil, err
	}
	after, err := e.Redis.Usage(ctx)
	figures := Figures{
		"p50": mine.took.at(50) * 1e3, "p90": mine.took.at(90) * 1e3,
		"beside by hand": mine.took.at(50) / hand.took.at(50),
		"requests":       float64(after.Since(before).Requests) / float64(mine.batch),
		"allocations":    mallocs,
	}
	if e.RoundTrip > 0 {
		figures["round trips"] = mine.took.at(50) / Millis(e.RoundTrip)
	}
	return figures, err
}

// misses are turns of asking for keys that nobody has.
func misses(ctx context.Context, c rivals.Cache, batch int) turns {
	prefix, n := NewKey(), 0
	value := ValueOf(prefix, Kibibyte)
	load := func(ctx context.Context) ([]byte, error) { return value, ctx.Err() }
	return turns{batch: batch, took: newTimes(), read: func() error {
		n++
		key := fmt.Sprint(prefix, ":", n)
		got, err := c.Get(ctx, key, load)
		return Check(key, got, value, err)
	}}
}

// batch is how many reads are a turn: a hundred, or fewer where they would take too long.
func (e Env) batch() int {
	const most, least, long = 100, 5, 100 * time.Millisecond
	if e.RoundTrip == 0 {
		return most
	}
	return max(least, min(most, int(long/e.RoundTrip)))
}

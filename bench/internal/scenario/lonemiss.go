package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

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

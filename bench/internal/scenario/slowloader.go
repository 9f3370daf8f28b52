package scenario

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

const lease = time.Second // of the instance that loads, for the libraries that have leases

// slowLoader runs a load that takes longer than its lease.
func slowLoader() Scenario {
	return Scenario{
		Name: "slow loader",
		About: "4 instances with 4 callers each ask at once for one key whose load takes 2.5 s, with a lease of 1 s for whoever loads. " +
			"Answers are timed from the end of the first load; after that, each instance asks once more, which may load again.",
		Metrics: []Metric{
			{Name: "loads", Better: Lower, Main: true},
			{Name: "answer p50", Unit: "ms", Better: Lower},
			{Name: "answer p99", Unit: "ms", Better: Lower},
		},
		Cases: []Case{{
			Name: "2.5 s with a lease of 1 s", Smoke: true, Slow: true, Rounds: 3,
			Entries: eachCache(rivals.Caches, runSlowLoader),
		}},
	}
}

func runSlowLoader(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	const instances, callers, takes = 4, 4, 2500 * time.Millisecond
	caches, err := openCaches(lib, rivals.Setup{Redis: e.Options(), TTL: Forever, Lease: lease}, instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(caches)) }()
	db, key, answers, began := newDatabase(takes, 0), NewKey(), newTimes(), time.Now()
	value := ValueOf(key, Kibibyte)
	var rebuilt atomic.Int64
	load := func(ctx context.Context) ([]byte, error) {
		v, err := db.load(value)(ctx)
		rebuilt.CompareAndSwap(0, int64(time.Since(began)))
		return v, err
	}
	ask := func(ctx context.Context, i int) error {
		got, err := caches[i%instances].Get(ctx, key, load)
		answers.add(time.Since(began) - time.Duration(rebuilt.Load()))
		return Check(key, got, value, err)
	}
	if err := Together(ctx, instances*callers, ask); err != nil {
		return nil, err
	}
	figures := Figures{"answer p50": answers.at(50), "answer p99": answers.at(99)}
	err = Together(ctx, instances, ask)
	figures["loads"] = float64(db.loads.Load())
	return figures, err
}

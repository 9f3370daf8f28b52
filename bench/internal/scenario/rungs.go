package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/internal/testing/rungs"
)

// ErrLeftOut says that an entry's servers are not there.
var ErrLeftOut = errors.New("left out")

// lockRungs compares the kinds of locks that the library has.
func lockRungs() Scenario {
	const contenders, paused = 16, 100 * time.Millisecond
	c := Contest{contenders, contenders, paused * 3 / 2 / (contenders - 1), paused}
	return Scenario{
		Name: "locks",
		About: "What outliving more failures costs: a lone caller locks and unlocks, and 16 contenders with a client each hand a lock on. Each kind has servers of its " +
			"own on this machine, etcd and ZooKeeper three members, and all but Redis wait for the disk. docs/locks.md says what each survives.",
		Metrics: []Metric{
			{Name: "p50", Unit: "ms", Better: Lower, Main: true},
			{Name: "p99", Unit: "ms", Better: Lower},
			{Name: "locks", Unit: "/s", Better: Higher},
		},
		Cases: []Case{
			{Name: "alone", Rounds: 3, Smoke: true, Slow: true, Away: []time.Duration{0}, Entries: eachRung(aloneOn)},
			{Name: "hand-over, 16 contenders", Rounds: 3, Away: []time.Duration{0}, Entries: eachRung(
				func(ctx context.Context, e Env, lib rivals.LockLibrary) (Figures, error) {
					f, err := runContest(ctx, e, lib, c)
					return Figures{"p50": f["hand-over p50"], "p99": f["hand-over p99"], "locks": f["locks"]}, err
				})},
		},
	}
}

func aloneOn(ctx context.Context, e Env, lib rivals.LockLibrary) (Figures, error) {
	f, err := runLoneLock(ctx, e, lib)
	return Figures{"p50": f["p50"] / 1e3, "p99": f["p99"] / 1e3}, err
}

// eachRung makes the entries of the rungs. The lowest is ours; the others are left out of a smoke run, as their servers take seconds
// to start.
func eachRung(run func(context.Context, Env, rivals.LockLibrary) (Figures, error)) (entries []Entry) {
	for i, r := range rungs.All {
		entries = append(entries, Entry{Name: r.Title, Ours: i == 0, Run: func(ctx context.Context, e Env) (Figures, error) {
			set := e.Rungs
			if set == nil {
				set = new(rungs.Set)
				defer set.End()
			}
			started, err := set.Get(r, e.Options().Addr)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrLeftOut, err)
			}
			return run(ctx, e, rivals.LockLibrary{Name: r.Title, Open: func(s rivals.LockSetup) (rivals.Lock, error) {
				return started.Open(rivals.Prefix+"rung", s.TTL)
			}})
		}})
	}
	return entries
}

package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// readShares have callers take one lock, most of them to read.
func readShares() Scenario {
	s := Scenario{
		Name: "read-write lock",
		About: "32 callers on 4 instances take one lock, so many per cent of them to read, and hold it for 2 ms. With a mutex the " +
			"readers take turns, too; no rival in Go has a read-write lock on Redis.",
		Metrics: []Metric{
			{Name: "locks", Unit: "/s", Better: Higher, Main: true},
			{Name: "wait p50", Unit: "ms", Better: Lower},
			{Name: "wait p99", Unit: "ms", Better: Lower},
			{Name: "requests", Better: Lower},
			{Name: "commands", Better: Lower},
		},
	}
	for _, percent := range []int64{50, 80, 95, 99} {
		s.Cases = append(s.Cases, Case{
			Name: fmt.Sprint(percent, " % read"), Params: map[string]float64{"read-percent": float64(percent)},
			Smoke: percent == 95, Slow: true,
			Entries: eachLock(slices.Concat(rivals.RWLocks, rivals.Locks),
				func(ctx context.Context, e Env, lib rivals.LockLibrary) (Figures, error) {
					return runReadShare(ctx, e, lib, percent)
				}),
		})
	}
	return s
}

func runReadShare(ctx context.Context, e Env, lib rivals.LockLibrary, percent int64) (_ Figures, err error) {
	const callers, instances, held = 32, 4, 2 * time.Millisecond
	opened, name, err := openWarmLocks(ctx, e, lib, instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(opened)) }()
	before, err := e.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	var turns atomic.Int64
	wait, began := newTimes(), time.Now()
	err = Together(ctx, callers, func(ctx context.Context, i int) error {
		for time.Since(began) < 2*e.For {
			lock := opened[i%instances].Lock
			if rw, ok := opened[i%instances].(rivals.RWLock); ok && turns.Add(1)*37%100 < percent {
				lock = rw.RLock
			}
			asked := time.Now()
			unlock, err := lock(ctx, name)
			if err != nil {
				return err
			}
			wait.add(time.Since(asked))
			Pause(ctx, held)
			if err := unlock(); err != nil {
				return err
			}
		}
		return nil
	})
	took := time.Since(began)
	if err != nil {
		return nil, err
	}
	after, err := e.Redis.Usage(ctx)
	spent, n := after.Since(before), float64(wait.h.TotalCount())
	return Figures{
		"locks": n / took.Seconds(), "wait p50": wait.at(50), "wait p99": wait.at(99),
		"requests": float64(spent.Requests) / n, "commands": float64(spent.Total()) / n,
	}, err
}

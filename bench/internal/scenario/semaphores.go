package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// semaphores have callers take the permits of one semaphore.
func semaphores() Scenario {
	s := Scenario{
		Name: "semaphore",
		About: fmt.Sprintf("A semaphore of %d permits. Alone: one caller takes a permit and gives it back. Contended: so many callers on 4 instances hold a permit for "+
			"20 ms, and ask again. No library in Go has leases, permits over the fleet and a queue; the rival is written by hand: a sorted set, and a poll every 100 ms.", rivals.SemaphorePermits),
		Metrics: []Metric{
			{Name: "permits", Unit: "/s", Better: Higher},
			{Name: "wait p50", Unit: "ms", Better: Lower},
			{Name: "wait p99", Unit: "ms", Better: Lower, Main: true},
			{Name: "at once", Better: Either},
			{Name: "requests", Better: Lower},
			{Name: "commands", Better: Lower},
			{Name: "server CPU", Unit: "µs", Better: Lower},
		},
	}
	for _, c := range []struct {
		name    string
		callers int
		held    time.Duration
	}{{"alone", 1, 0}, {"32 callers", 32, 20 * time.Millisecond}, {"128 callers", 128, 20 * time.Millisecond}} {
		s.Cases = append(s.Cases, Case{
			Name: c.name, Params: map[string]float64{"callers": float64(c.callers)},
			Smoke: c.callers == 32, Slow: true, Away: []time.Duration{0, time.Millisecond},
			Entries: eachLock(rivals.Semaphores, func(ctx context.Context, e Env, lib rivals.LockLibrary) (Figures, error) {
				return runSemaphore(ctx, e, lib, c.callers, c.held)
			}),
		})
	}
	return s
}

func runSemaphore(ctx context.Context, e Env, lib rivals.LockLibrary, callers int, held time.Duration) (_ Figures, err error) {
	const instances = 4
	opened, name, err := openWarmLocks(ctx, e, lib, instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(opened)) }()
	before, err := e.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	var inside, most atomic.Int64
	wait, began := newTimes(), time.Now()
	err = Together(ctx, callers, func(ctx context.Context, i int) error {
		for time.Since(began) < 4*e.For {
			asked := time.Now()
			unlock, err := opened[i%instances].Lock(ctx, name)
			if err != nil {
				return err
			}
			wait.add(time.Since(asked))
			now := inside.Add(1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); {
				seen = most.Load()
			}
			Pause(ctx, held)
			inside.Add(-1)
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
		"permits": n / took.Seconds(), "wait p50": wait.at(50), "wait p99": wait.at(99), "at once": float64(most.Load()),
		"requests": float64(spent.Requests) / n, "commands": float64(spent.Total()) / n, "server CPU": Micros(spent.CPU) / n,
	}, err
}

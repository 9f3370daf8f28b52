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

// contests have contenders with a client each take turns with one lock.
func contests() Scenario {
	s := Scenario{
		Name: "lock, contended",
		About: "Contenders, each with a client of its own unless it says otherwise, take turns with one lock. Hand-over is from the beginning of an unlock to " +
			"the next holder. Wait is from asking to having. The last three are by lock taken.",
		Metrics: []Metric{
			{Name: "locks", Unit: "/s", Better: Higher},
			{Name: "hand-over p50", Unit: "ms", Better: Lower},
			{Name: "hand-over p99", Unit: "ms", Better: Lower},
			{Name: "wait p99", Unit: "ms", Better: Lower, Main: true},
			{Name: "requests", Better: Lower},
			{Name: "commands", Better: Lower},
			{Name: "server CPU", Unit: "µs", Better: Lower},
		},
	}
	add := func(name string, c Contest) {
		s.Cases = append(s.Cases, Case{
			Name:   name,
			Params: map[string]float64{"contenders": float64(c.Contenders), "clients": float64(c.Clients)},
			Smoke:  c.Contenders == 8, Slow: true,
			Entries: eachLock(rivals.Locks, func(ctx context.Context, e Env, lib rivals.LockLibrary) (Figures, error) {
				return runContest(ctx, e, lib, c)
			}),
		})
	}
	for _, n := range []int{2, 4, 8, 16, 32, 64} {
		add(fmt.Sprintf("%d contenders, held 3 ms, paused 2 ms", n), Contest{n, n, 3 * time.Millisecond, 2 * time.Millisecond})
	}
	for _, clients := range []int{1, 8} {
		name := fmt.Sprintf("64 contenders on %d clients, held 3 ms, paused 2 ms", clients)
		add(name, Contest{64, clients, 3 * time.Millisecond, 2 * time.Millisecond})
	}
	// They pause for as long as redislock does between two attempts, so that a holder does not get the lock back before
	// those who wait have tried, and hold it for longer than that together, so that somebody always waits.
	const paused = 100 * time.Millisecond
	for _, n := range []int{2, 16} {
		held := paused * 3 / 2 / time.Duration(n-1)
		add(fmt.Sprintf("hand-over: %d contenders, held %d ms, paused 100 ms", n, held.Milliseconds()), Contest{n, n, held, paused})
	}
	return s
}

// Contest says how many want a lock, and how often.
type Contest struct {
	Contenders, Clients int
	Held, Paused        time.Duration
}

func runContest(ctx context.Context, e Env, lib rivals.LockLibrary, c Contest) (_ Figures, err error) {
	clients, err := openLocks(e, lib, c.Clients)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(clients)) }()
	contenders := slices.Repeat(clients, c.Contenders/c.Clients)
	if _, err := c.run(ctx, contenders, 0); err != nil { // connections, scripts and subscriptions
		return nil, err
	}
	before, err := e.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	r, err := c.run(ctx, contenders, 4*e.For)
	if err != nil {
		return nil, err
	}
	after, err := e.Redis.Usage(ctx)
	spent, n := after.Since(before), float64(r.taken.Load())
	return Figures{
		"locks":         n / r.took.Seconds(),
		"hand-over p50": r.handOver.at(50), "hand-over p99": r.handOver.at(99), "wait p99": r.wait.at(99),
		"requests": float64(spent.Requests) / n, "commands": float64(spent.Total()) / n, "server CPU": Micros(spent.CPU) / n,
	}, err
}

// contested is the outcome of a contest.
type contested struct {
	handOver, wait *times
	taken          atomic.Int64
	took           time.Duration

	began    time.Time
	inside   atomic.Int64
	unlocked atomic.Int64 // when the last unlock began, since began
}

// run makes each contender take the lock until the time is over, and at least once.
func (c Contest) run(ctx context.Context, contenders []rivals.Lock, d time.Duration) (*contested, error) {
	r := &contested{handOver: newTimes(), wait: newTimes(), began: time.Now()}
	name := NewKey()
	err := Together(ctx, len(contenders), func(ctx context.Context, i int) error {
		for turn := 0; turn == 0 || time.Since(r.began) < d; turn++ {
			if err := r.turn(ctx, contenders[i], name, c.Held); err != nil {
				return err
			}
			Pause(ctx, c.Paused)
		}
		return nil
	})
	r.took = time.Since(r.began)
	return r, err
}

func (r *contested) turn(ctx context.Context, k rivals.Lock, name string, held time.Duration) error {
	asked := time.Now()
	unlock, err := k.Lock(ctx, name)
	if err != nil {
		return err
	}
	now := time.Since(r.began)
	r.wait.add(time.Since(asked))
	if n := r.inside.Add(1); n != 1 {
		return fmt.Errorf("%d have the lock", n)
	}
	if at := r.unlocked.Load(); at != 0 {
		r.handOver.add(now - time.Duration(at))
	}
	r.taken.Add(1)
	Pause(ctx, held)
	r.inside.Add(-1)
	r.unlocked.Store(int64(time.Since(r.began)))
	return unlock()
}

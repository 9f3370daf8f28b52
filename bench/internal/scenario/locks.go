package scenario

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

const lockTTL = 10 * time.Second

// eachLock makes the entries of the libraries.
func eachLock(
	libs []rivals.LockLibrary, run func(context.Context, Env, rivals.LockLibrary) (Figures, error),
) []Entry {
	var entries []Entry
	for _, lib := range libs {
		entries = append(entries, Entry{
			Name: lib.Name, Ours: lib.Ours,
			Run: func(ctx context.Context, e Env) (Figures, error) { return run(ctx, e, lib) },
		})
	}
	return entries
}

// allLocks returns the exclusive locks and the read-write locks.
func allLocks() []rivals.LockLibrary { return slices.Concat(rivals.Locks, rivals.RWLocks) }

// openLocks makes n instances. The caller closes them.
func openLocks(e Env, lib rivals.LockLibrary, n int) ([]rivals.Lock, error) {
	var locks []rivals.Lock
	for range n {
		k, err := lib.Open(rivals.LockSetup{Redis: e.Options(), TTL: lockTTL})
		if err != nil {
			return nil, errors.Join(err, CloseAll(locks))
		}
		locks = append(locks, k)
	}
	return locks, nil
}

// openWarmLocks is openLocks with connections and scripts that were used, for the name that it returns.
func openWarmLocks(ctx context.Context, e Env, lib rivals.LockLibrary, n int) (opened []rivals.Lock, name string, err error) {
	opened, err = openLocks(e, lib, n)
	if err != nil {
		return nil, "", err
	}
	name = NewKey()
	for _, k := range opened {
		if err := LockUnlock(ctx, k, name); err != nil {
			return nil, "", errors.Join(err, CloseAll(opened))
		}
	}
	return opened, name, nil
}

// locks locks and unlocks what nobody else wants.
func locks() Scenario {
	return Scenario{
		Name:  "lock, uncontended",
		About: "One caller locks and unlocks what nobody else wants, rwlock to write. All figures are for both together.",
		Metrics: []Metric{
			{Name: "p50", Unit: "µs", Better: Lower, Main: true},
			{Name: "p99", Unit: "µs", Better: Lower},
			{Name: "requests", Better: Lower},
			{Name: "commands", Better: Lower},
			{Name: "server CPU", Unit: "µs", Better: Lower},
			{Name: "allocations", Better: Lower},
		},
		Cases: []Case{{Name: "lock and unlock", Smoke: true, Entries: eachLock(allLocks(), runLoneLock)}},
	}
}

func runLoneLock(ctx context.Context, e Env, lib rivals.LockLibrary) (_ Figures, err error) {
	opened, name, err := openWarmLocks(ctx, e, lib, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(opened)) }()
	k := opened[0]
	before, err := e.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	var memory, then runtime.MemStats
	runtime.ReadMemStats(&memory)
	took, n := newTimes(), 0.0
	for began := time.Now(); n == 0 || time.Since(began) < e.For; n++ {
		asked := time.Now()
		if err := LockUnlock(ctx, k, name); err != nil {
			return nil, err
		}
		took.add(time.Since(asked))
	}
	runtime.ReadMemStats(&then)
	after, err := e.Redis.Usage(ctx)
	spent := after.Since(before)
	return Figures{
		"p50": took.at(50) * 1e3, "p99": took.at(99) * 1e3,
		"requests": float64(spent.Requests) / n, "commands": float64(spent.Total()) / n,
		"server CPU": Micros(spent.CPU) / n, "allocations": float64(then.Mallocs-memory.Mallocs) / n,
	}, err
}

// LockUnlock takes a lock and gives it up.
func LockUnlock(ctx context.Context, k rivals.Lock, name string) error {
	unlock, err := k.Lock(ctx, name)
	if err != nil {
		return err
	}
	return unlock()
}

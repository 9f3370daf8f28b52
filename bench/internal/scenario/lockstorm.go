package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// LockStorm is callers who ask for one lock, give up after a short while, and ask again. Few of them can have it in time.
type LockStorm struct {
	Callers, Clients int
	Held             time.Duration
	Least, Most      time.Duration // of a caller's patience, to which two round trips are added
	Lasts            time.Duration
}

// Stormed is the outcome.
type Stormed struct {
	Asked, Taken int64
	Unanswered   int64         // releases to which Redis did not answer in time; they are sent again in the background
	Goroutines   int64         // at once, at most, beyond those from before
	Patient      time.Duration // for which somebody waits who asks when all have left
}

// Impetuous is the storm of the scenario, and of the tests that count.
var Impetuous = LockStorm{
	Callers: 400, Clients: 4, Held: 2 * time.Millisecond, Least: 20 * time.Millisecond, Most: 50 * time.Millisecond, Lasts: 3 * time.Second,
}

// lockStorms have waits time out.
func lockStorms() Scenario {
	s := Scenario{
		Name: "lock, storm",
		About: "400 callers on 4 clients ask for one lock, hold it for 2 ms, and ask again; who does not have it after 20 to 50 ms, and two round trips, gives up " +
			"and asks again, too. Goroutines: more than before the storm, at once, at most. \"Patient\": how long somebody waits for the lock who asks when " +
			"all have left.",
		Metrics: []Metric{
			{Name: "locks", Unit: "/s", Better: Higher, Main: true},
			{Name: "asked", Unit: "/s", Better: Either},
			{Name: "goroutines", Better: Lower},
			{Name: "patient", Unit: "ms", Better: Lower},
		},
	}
	s.Cases = append(s.Cases, Case{
		Name:   fmt.Sprint(Impetuous.Callers, " callers"),
		Params: map[string]float64{"callers": float64(Impetuous.Callers), "clients": float64(Impetuous.Clients)},
		Smoke:  true, Slow: true, Rounds: 2,
		Away: []time.Duration{0, 4 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond},
		Entries: eachLock(allLocks(), func(ctx context.Context, e Env, lib rivals.LockLibrary) (Figures, error) {
			storm := Impetuous
			storm.Lasts = min(storm.Lasts, 10*e.For)
			was, err := storm.Run(ctx, e.Options(), e.RoundTrip, lib)
			if err != nil {
				return nil, err
			}
			seconds := storm.Lasts.Seconds()
			return Figures{
				"locks": float64(was.Taken) / seconds, "asked": float64(was.Asked) / seconds,
				"goroutines": float64(was.Goroutines), "patient": Millis(was.Patient),
			}, nil
		}),
	})
	return s
}

// Run is one storm on new clients, whose Redis is at options, a round trip away.
func (s LockStorm) Run(
	ctx context.Context, options *redis.Options, roundTrip time.Duration, lib rivals.LockLibrary,
) (_ *Stormed, err error) {
	var clients []rivals.Lock
	defer func() { err = errors.Join(err, CloseAll(clients)) }()
	name := NewKey()
	for range s.Clients {
		k, err := lib.Open(rivals.LockSetup{Redis: options, TTL: lockTTL})
		if err != nil {
			return nil, err
		}
		clients = append(clients, k)
		if err := LockUnlock(ctx, k, name); err != nil { // connections and scripts
			return nil, err
		}
	}
	was, over := new(Stormed), time.Now().Add(s.Lasts)
	counted := was.countGoroutines()
	err = Together(ctx, s.Callers, func(ctx context.Context, i int) error {
		for time.Now().Before(over) {
			patience := s.Least + rand.N(s.Most-s.Least) + 2*roundTrip
			if err := was.ask(ctx, clients[i%s.Clients], name, patience, s.Held); err != nil {
				return err
			}
		}
		return nil
	})
	counted()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, TooLong)
	defer cancel()
	asked := time.Now()
	unlock, err := clients[0].Lock(ctx, name)
	for err != nil && ctx.Err() == nil { // too busy with those who have left
		unlock, err = clients[0].Lock(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("a patient caller: %w", err)
	}
	was.Patient = time.Since(asked)
	return was, unlock()
}

func (was *Stormed) ask(ctx context.Context, k rivals.Lock, name string, patience, held time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	atomic.AddInt64(&was.Asked, 1)
	unlock, err := k.Lock(ctx, name)
	if err != nil {
		return nil // that it was not to be had is what is counted
	}
	atomic.AddInt64(&was.Taken, 1)
	Pause(context.WithoutCancel(ctx), held)
	if err = unlock(); errors.Is(err, context.DeadlineExceeded) {
		atomic.AddInt64(&was.Unanswered, 1)
		return nil
	}
	return err
}

// countGoroutines looks every now and then, until it is told to stop.
func (was *Stormed) countGoroutines() (stop func()) {
	const often = 5 * time.Millisecond
	before, done := int64(runtime.NumGoroutine()), make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() { // owner: Run; stop: stop; joined by it
		tick := time.NewTicker(often)
		defer tick.Stop()
		for {
			was.Goroutines = max(was.Goroutines, int64(runtime.NumGoroutine())-before)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		looking.Wait()
	}
}

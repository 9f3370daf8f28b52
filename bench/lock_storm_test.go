package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
)

// A storm: many callers of one lock, whose contexts end before most of them can have it. They come again at once.
const (
	stormCallers  = 400
	stormHold     = 2 * time.Millisecond
	stormFor      = 600 * time.Millisecond
	stormMost     = 2*stormCallers + 100 // goroutines: those of the callers and their contexts' timers; 100 of the client, this test and the lock
	stormPatience = 30 * time.Second
	stormTimeout  = 5 * time.Second // a machine that is busy with other things is not a Redis that does not answer
)

// stormLock is a lock in a storm.
type stormLock struct {
	lock  func(ctx context.Context, name string) (unlock func(context.Context) error, err error)
	left  func(ctx context.Context, name string) (holders, waiters int, err error)
	close func() error
}

func stormMutex(fair bool) func(testing.TB, *redis.Client) stormLock {
	return func(tb testing.TB, rdb *redis.Client) stormLock {
		tb.Helper()
		k, err := mutex.New(rdb, mutex.Config{Prefix: tb.Name(), Fair: fair, RedisTimeout: stormTimeout})
		if err != nil {
			tb.Fatal(err)
		}
		return stormLock{
			lock: locking(k.Lock),
			left: func(ctx context.Context, name string) (int, int, error) {
				info, err := k.Inspect(ctx, name)
				return info.Holds, info.Waiters, err
			},
			close: k.Close,
		}
	}
}

func stormRWLock(tb testing.TB, rdb *redis.Client) stormLock {
	tb.Helper()
	k, err := rwlock.New(rdb, rwlock.Config{Prefix: tb.Name(), RedisTimeout: stormTimeout})
	if err != nil {
		tb.Fatal(err)
	}
	return stormLock{
		lock: locking(k.Lock),
		left: func(ctx context.Context, name string) (int, int, error) {
			info, err := k.Inspect(ctx, name)
			holders := info.Readers
			if info.Token != "" {
				holders++
			}
			return holders, info.WaitingReaders + info.WaitingWriters, err
		},
		close: k.Close,
	}
}

// locking is a lock function that returns how to unlock.
func locking[L interface {
	Unlock(ctx context.Context) error
}](lock func(ctx context.Context, name string) (L, error)) func(context.Context, string) (func(context.Context) error, error) {
	return func(ctx context.Context, name string) (func(context.Context) error, error) {
		l, err := lock(ctx, name)
		if err != nil {
			return nil, err
		}
		return l.Unlock, nil
	}
}

// storm counts what happened in one.
type storm struct {
	attempts, locked, errors atomic.Int64
	goroutines               int    // at most, at a time
	crowded                  string // what they did when they were too many
	least                    int64  // how often the lock is to be had before the storm ends: a busy machine takes its time
}

// goesOn reports whether the storm has not been long enough.
func (s *storm) goesOn(began time.Time) bool {
	took := time.Since(began)
	return took < stormFor || s.locked.Load() < s.least && took < stormPatience/2
}

// run makes the callers come until the storm is over.
func (s *storm) run(tb testing.TB, k stormLock, shortest, longest time.Duration) {
	tb.Helper()
	before := runtime.NumGoroutine()
	began := time.Now()
	var callers sync.WaitGroup
	for range stormCallers {
		callers.Go(func() { // owner: the storm; stop: goesOn; joined below
			for s.goesOn(began) {
				s.attempts.Add(1)
				ctx, cancel := context.WithTimeout(context.Background(), shortest+rand.N(longest-shortest))
				unlock, err := k.lock(ctx, "k")
				if err == nil {
					s.locked.Add(1)
					time.Sleep(stormHold)
					err = unlock(context.Background())
				} else if errors.Is(err, ctx.Err()) { // it left, whether or not it had been told that others have the lock
					err = nil
				}
				if err != nil {
					s.errors.Add(1)
					tb.Log(err)
				}
				cancel()
			}
		})
	}
	for s.goesOn(began) {
		s.count(before)
		time.Sleep(5 * time.Millisecond)
	}
	callers.Wait()
}

// count notes how many goroutines there are. While the garbage collector takes the stacks of ended ones, NumGoroutine counts
// them, too: so many are counted one by one.
func (s *storm) count(before int) {
	goroutines := runtime.NumGoroutine()
	if goroutines-before > stormMost {
		var all strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&all, 1) // a Builder takes everything
		if _, err := fmt.Sscanf(all.String(), "goroutine profile: total %d", &goroutines); err == nil && goroutines-before > stormMost {
			s.crowded = all.String()
		}
	}
	s.goroutines = max(s.goroutines, goroutines-before)
}

// TestAStormOfImpatientCallersCostsNobodyElse: goroutines are bounded by the callers, most attempts cost Redis nothing, the lock
// is handed on all the same, nothing is left in Redis for callers that have left, and a patient caller has the lock in its turn.
func TestAStormOfImpatientCallersCostsNobodyElse(t *testing.T) {
	for name, open := range map[string]func(testing.TB, *redis.Client) stormLock{
		"mutex": stormMutex(false), "mutex, fair": stormMutex(true), "rwlock": stormRWLock,
	} {
		for _, roundTrip := range []time.Duration{0, 4 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
			for _, deadlines := range [][2]time.Duration{{0, 4 * time.Millisecond}, {20 * time.Millisecond, 50 * time.Millisecond}} {
				t.Run(fmt.Sprint(name, ", round trip ", roundTrip, ", deadlines ", deadlines), func(t *testing.T) {
					rdb := shared.Client(t)
					if roundTrip > 0 {
						rdb = redistest.StartFar(t, shared.Addr(), roundTrip).Client(t)
					}
					k := open(t, rdb)
					k.check(t, roundTrip, deadlines[0], deadlines[1])
				})
			}
		}
	}
}

// pass locks and unlocks as a patient caller, and logs how long it waited.
func (k stormLock) pass(ctx context.Context, t *testing.T, when string) error {
	t.Helper()
	began := time.Now()
	unlock, err := k.lock(ctx, "k")
	t.Logf("patient %s the storm: %v", when, time.Since(began))
	if err != nil {
		return err
	}
	return unlock(ctx)
}

func (k stormLock) check(t *testing.T, roundTrip, shortest, longest time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stormPatience)
	defer cancel()
	if err := k.pass(ctx, t, "before"); err != nil { // connections, scripts
		t.Fatal(err)
	}
	var s storm
	if shortest > 3*roundTrip { // a hundredth of what a lock held for so long can do: a busy machine does less, but not next to nothing
		s.least = max(1, int64(stormFor/(stormHold+2*roundTrip))/100)
	}
	var patient sync.WaitGroup
	patient.Go(func() { // owner: the test; stop: ctx; joined below
		time.Sleep(stormFor / 2)
		if err := k.pass(ctx, t, "during"); err != nil {
			t.Error(err)
		}
	})
	scripts := shared.Commands()["evalsha"]
	s.run(t, k, shortest, longest)
	patient.Wait()
	scripts = shared.Commands()["evalsha"] - scripts
	t.Logf("%d of %d locked, %d scripts, %d goroutines", s.locked.Load(), s.attempts.Load(), scripts, s.goroutines)
	if err := k.pass(ctx, t, "after"); err != nil {
		t.Error(err)
	}
	if most := s.attempts.Load() / 2; scripts > most {
		t.Errorf("%d scripts for %d attempts, want at most %d", scripts, s.attempts.Load(), most)
	}
	if s.locked.Load() < s.least {
		t.Errorf("%d of %d attempts had the lock, want %d", s.locked.Load(), s.attempts.Load(), s.least)
	}
	if s.goroutines > stormMost {
		t.Errorf("%d goroutines for %d callers: %s", s.goroutines, stormCallers, s.crowded)
	}
	if n := s.errors.Load(); n > 0 {
		t.Errorf("%d calls failed otherwise than by their deadline", n)
	}
	redistest.Await(t, "nothing is left in Redis", func() bool {
		holders, waiters, err := k.left(ctx, "k")
		return err == nil && holders+waiters == 0
	})
	if err := k.close(); err != nil {
		t.Error(err)
	}
}

package mutex

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestOneHolderAtATimeAndFencesGrow(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, cfg Config) {
		crowd(t, newFleet(t, 4, cfg), 5, 20)
	})
}

// crowd makes callers of each locker take turns with one lock.
func crowd(t *testing.T, f *fleet, callers, rounds int) {
	t.Helper()
	var wg sync.WaitGroup
	inside, last := 0, int64(0) // the lock guards them, so the race detector does too
	for _, k := range f.lockers {
		for range callers {
			wg.Go(func() {
				for range rounds {
					err := k.Do(patient(t), "k", func(_ context.Context, l *Lease) error {
						inside++
						if inside != 1 || l.Fence() <= last {
							t.Errorf("%d inside, fence %d after %d", inside, l.Fence(), last)
						}
						last = l.Fence()
						inside--
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	f.awaitFree("k")
}

func TestTryLockDoesNotWait(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, cfg Config) {
		f := newFleet(t, 2, cfg)
		l := must(t)(f.lockers[0].TryLock(t.Context(), "k"))
		for _, k := range f.lockers {
			_, err := k.TryLock(t.Context(), "k")
			expect.ErrorIs(t, err, ErrNotAcquired)
		}
		f.awaitWaiters("k", 0)
		f.unlock(l)
		f.unlock(must(t)(f.lockers[1].TryLock(t.Context(), "k")))
	})
}

func TestUncontendedLockAndUnlockAreOneRoundTripEach(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleetOn(t, s.Client(t), Config{}, s.Client(t)).listening()
	f.unlock(f.lock(0, "k"))
	f.unlock(f.lock(0, "k"))
	expect.Equal(t, "requests", s.FewestReads(2, func() { f.unlock(f.lock(0, "k")) }), 2)
}

func TestAWaitThatIsCutShortSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, cfg Config) {
		f := newFleet(t, 2, cfg)
		l := f.lock(0, "k")
		why := errors.New("changed my mind")
		a := f.ask(t.Context(), 1, "k")
		f.awaitWaiters("k", 1)
		a.MustWait()
		a.Leave(why)
		expect.ErrorIs(t, a.Err(), context.Canceled, why) // and ErrNotAcquired, once it has heard of the other: see locktest
		f.awaitWaiters("k", 0)
		f.unlock(l)
		f.awaitFree("k")
		f.unlock(f.lock(0, "k"))
	})
}

func TestAContextThatHasEndedAsksNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, lock := f.lockers[0].Lock(ctx, "k")
	_, try := f.lockers[0].TryLock(ctx, "k")
	for _, err := range []error{lock, try} {
		if expect.ErrorIs(t, err, context.Canceled); errors.Is(err, ErrNotAcquired) {
			t.Errorf("nobody said that others have it: %v", err)
		}
	}
	expect.Equal(t, "keys", f.redis.Exists(t.Context(), f.key("k")).Val(), 0)
}

func TestTheLeaseOutlivesTheContextOfTheWait(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ownerKey{}, 1)) // no owner, but a value
	l := must(t)(f.lockers[0].Lock(ctx, "k"))
	cancel()
	if l.Context().Err() != nil || l.Context().Value(ownerKey{}) != 1 {
		t.Error("the lease ended with the wait, or lost its values")
	}
	if err := l.Unlock(ctx); err != nil {
		t.Errorf("unlock with a dead context: %v", err)
	}
	expect.ErrorIs(t, context.Cause(l.Context()), context.Canceled)
	f.awaitFree("k")
}

func TestUnlockIsIdempotentAndNeverFreesAnothers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{})
	l := f.lock(0, "k")
	f.unlock(l)
	other := f.lock(1, "k")
	f.unlock(l)
	reply, err := l.held.Claim.GiveUp(false) // as if the client had sent it twice
	expect.ErrorIs(t, err)
	expect.Equal(t, "unlocked again", reply, queue.Done)
	expect.Equal(t, "token", must2(f.lockers[0].Inspect(t.Context(), "k")).Token, other.Token())
	f.unlock(other)
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestDoReturnsItsErrorAndUnlocksAlsoWhenItPanics(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	boom := errors.New("boom")
	expect.ErrorIs(t, f.lockers[0].Do(t.Context(), "k", func(context.Context, *Lease) error { return boom }), boom)
	func() {
		defer func() { expect.Equal(t, "panic", recover(), any("boom")) }()
		_ = f.lockers[0].Do(t.Context(), "k", func(context.Context, *Lease) error { panic("boom") })
	}()
	f.unlock(must(t)(f.lockers[0].TryLock(t.Context(), "k")))
}

func TestTheFenceIsRememberedWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	l := f.lock(0, "k")
	f.unlock(l)
	ahead := l.Fence() + int64(time.Minute/time.Microsecond) // as if it had been given before the clock was set back
	if err := f.redis.HSet(t.Context(), f.key("k"), "fence", ahead).Err(); err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		l := f.lock(0, "k")
		expect.Equal(t, "fence", l.Fence(), ahead+1+i)
		f.unlock(l)
	}
}

func TestEveryKeyHasATTL(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{})
	check := func() {
		t.Helper()
		for _, key := range f.redis.Keys(t.Context(), f.lockers[0].base.Config.Prefix+"*").Val() {
			if f.redis.PTTL(t.Context(), key).Val() <= 0 {
				t.Errorf("%s has no TTL", key)
			}
		}
	}
	l := f.lock(0, "k")
	check()
	a := f.ask(t.Context(), 1, "k")
	f.awaitWaiters("k", 1)
	check()
	f.unlock(l)
	f.unlock(a.Got())
	check()
}

func TestClosedLockersRefuseAndUnlock(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, cfg Config) {
		f := newFleet(t, 2, cfg)
		l := f.lock(0, "k")
		a, b := f.ask(t.Context(), 1, "k"), f.ask(t.Context(), 1, "k")
		f.awaitWaiters("k", map[bool]int{false: 1, true: 2}[cfg.Fair])
		_ = f.lockers[1].Close()
		expect.ErrorIs(t, a.Err(), ErrClosed)
		expect.ErrorIs(t, b.Err(), ErrClosed)
		f.awaitWaiters("k", 0)
		_, err := f.lockers[1].TryLock(t.Context(), "k")
		expect.ErrorIs(t, err, ErrClosed)
		_ = f.lockers[0].Close()
		cause(t, l, ErrClosed)
		expect.ErrorIs(t, l.Unlock(t.Context()), ErrClosed)
		expect.ErrorIs(t, l.Extend(t.Context()), ErrClosed)
		expect.Equal(t, "token", f.redis.HGet(t.Context(), f.key("k"), "token").Val(), "")
	})
}

func TestLocksWithManyNamesDoNotMeet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	var all []*Lease
	for _, name := range []string{"a", "{a}", "}", `\}`, "a}b", "a:queue"} {
		all = append(all, must(t)(f.lockers[0].TryLock(t.Context(), name)))
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, l := range all {
		f.unlock(l)
	}
	_, err := f.lockers[0].Lock(t.Context(), "")
	if err == nil {
		t.Error("an empty name is accepted")
	}
}

func TestALockIsHandedOverUnderSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	connect := func() client { return redistest.DeclaredKeys(t, s.FailoverClient(t)) }
	eachKind(t, func(t *testing.T, cfg Config) {
		f := newFleetOn(t, s.FailoverClient(t), cfg, connect(), connect()).listening()
		first := f.lock(0, "a")
		next := f.ask(patient(t), 1, "a")
		redistest.Await(t, "the other waits", func() bool { return f.look().Waiters == 1 })
		next.MustWait()
		f.unlock(first)
		second := next.Got()
		if second.Fence() <= first.Fence() {
			t.Errorf("the fence of the second is %d, after %d", second.Fence(), first.Fence())
		}
		f.unlock(second)
	})
}

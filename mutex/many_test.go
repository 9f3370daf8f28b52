package mutex

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestOverlappingSetsOfLocksDoNotWaitForEachOtherInACircle(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, Config{})
	philosophers(t, f)
}

func philosophers(t *testing.T, f *fleet) {
	t.Helper()
	var wg sync.WaitGroup
	inside := make([]int, 5) // the locks guard them
	for i := range 5 {
		wg.Go(func() {
			left, right := i, (i+1)%5
			for range 5 {
				all, err := f.lockers[i%len(f.lockers)].LockMany(patient(t), fork(right), fork(left), fork(right))
				if err != nil {
					t.Error(err)
					return
				}
				expect.Equal(t, "leases", len(all.Each()), 2)
				inside[left]++
				inside[right]++
				expect.Equal(t, "holders of a fork", max(inside[left], inside[right]), 1)
				inside[left]--
				inside[right]--
				if err := all.Unlock(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func fork(i int) string { return fmt.Sprint("fork", i) }

func TestLockManyTakesAllOrNone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{})
	l := f.lock(0, "b")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // owner: the test; joined by receiving
		_, err := f.lockers[1].LockMany(ctx, "c", "a", "b")
		done <- err
	}()
	f.awaitWaiters("b", 1)
	_, err := f.lockers[0].TryLock(t.Context(), "a")
	expect.ErrorIs(t, err, ErrNotAcquired)
	cancel()
	expect.ErrorIs(t, <-done, context.Canceled)
	f.awaitFree("a")
	f.awaitFree("c")
	f.unlock(l)
	_, err = f.lockers[0].LockMany(t.Context())
	expect.ErrorIs(t, err, errNoNames)
}

func TestTheContextOfManyLeasesEndsWithTheFirst(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{TTL: time.Hour}).listening()
	all, err := f.lockers[0].LockMany(t.Context(), "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "revoked", must2(f.lockers[1].Revoke(t.Context(), "b")), true)
	<-all.Context().Done()
	expect.ErrorIs(t, context.Cause(all.Context()), ErrRevoked)
	expect.ErrorIs(t, all.Unlock(t.Context()), ErrRevoked)
	f.awaitFree("a")
}

func TestLocksEverywhere(t *testing.T) {
	everywhere(t, func(t *testing.T, connect func() client) {
		eachKind(t, func(t *testing.T, cfg Config) {
			f := newFleetOn(t, connect(), cfg, connect(), connect(), connect()).listening()
			crowd(t, f, 3, 5)
			philosophers(t, f)
			l := f.lock(0, "k")
			expect.Equal(t, "revoked", must2(f.lockers[1].Revoke(t.Context(), "k")), true)
			cause(t, l, ErrRevoked)
		})
	})
}

// A lease that nobody else would ask for again soon passes on by a message.
func TestAMessagePassesALockOnEverywhere(t *testing.T) {
	everywhere(t, func(t *testing.T, connect func() client) {
		eachKind(t, func(t *testing.T, cfg Config) {
			cfg.TTL = time.Hour
			f := newFleetOn(t, connect(), cfg, connect(), connect()).listening()
			l := f.lock(0, "k")
			w := f.ask(patient(t), 1, "k")
			f.awaitWaiters("k", 1)
			f.unlock(l)
			f.unlock(w.Got())
		})
	})
}

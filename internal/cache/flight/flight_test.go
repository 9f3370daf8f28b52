package flight_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestCallersOfOneKeyShareOneRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		first := do(t.Context(), &g, "k", run.run)
		var others []*call
		for range 9 {
			others = append(others, do(t.Context(), &g, "k", never(t)))
		}
		expect.Equal(t, "callers", g.Count(nil).Callers, 10)
		run.end <- 42
		expect.Equal(t, "the first", first.outcome(), outcome{42, false, nil})
		for _, c := range others {
			expect.Equal(t, "another", c.outcome(), outcome{42, true, nil})
		}
		expect.Equal(t, "callers afterwards", g.Count(nil).Callers, 0)
	})
}

func TestKeysHaveRunsOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		a, b := newGate(), newGate()
		first, second := do(t.Context(), &g, "a", a.run), do(t.Context(), &g, "b", b.run)
		b.end <- 2
		a.end <- 1
		expect.Equal(t, "a", first.outcome(), outcome{1, false, nil})
		expect.Equal(t, "b", second.outcome(), outcome{2, false, nil})
	})
}

func TestResultIsNotRemembered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		for want := range 3 {
			run := newGate()
			c := do(t.Context(), &g, "k", run.run)
			run.end <- want
			expect.Equal(t, "the run", c.outcome(), outcome{want, false, nil})
		}
	})
}

func TestOthersGetTheResultWhenTheFirstCallerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		first := do(t.Context(), &g, "k", run.run)
		other := do(t.Context(), &g, "k", never(t))
		first.leave()
		if got := first.outcome(); !errors.Is(got.err, context.Canceled) || got.joined {
			t.Errorf("the first: %+v", got)
		}
		expect.Equal(t, "callers that are left", g.Count(nil).Callers, 1)
		expect.ErrorIs(t, (<-run.began).Err())
		run.end <- 42
		expect.Equal(t, "the other", other.outcome(), outcome{42, true, nil})
	})
}

func TestCallerThatJoinedMayLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		first := do(t.Context(), &g, "k", run.run)
		other := do(t.Context(), &g, "k", never(t))
		other.leave()
		if got := other.outcome(); !errors.Is(got.err, context.Canceled) || !got.joined {
			t.Errorf("the other: %+v", got)
		}
		run.end <- 42
		expect.Equal(t, "the first", first.outcome(), outcome{42, false, nil})
	})
}

func TestRunIsCancelledWhenItsLastCallerHasLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		ended := make(chan error, 1)
		first := do(t.Context(), &g, "k", obedient(ended))
		other := do(t.Context(), &g, "k", never(t))
		first.leave()
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal("the run was cancelled while somebody waited")
		}
		other.leave()
		if cause := <-ended; cause == nil || errors.Is(cause, context.Canceled) {
			t.Errorf("cause = %v, want one that tells why", cause)
		}
	})
}

func TestCallerAfterTheLastHasLeftGetsANewRunWhileTheOldOneStillEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		slow, next := newGate(), newGate()
		do(t.Context(), &g, "k", slow.run).leave()
		synctest.Wait()
		second := do(t.Context(), &g, "k", next.run)
		expect.Equal(t, "new runs", next.runs(), 1)
		slow.end <- 1 // must neither answer nor forget the new one
		synctest.Wait()
		third := do(t.Context(), &g, "k", never(t))
		next.end <- 2
		expect.Equal(t, "second", second.outcome(), outcome{2, false, nil})
		expect.Equal(t, "third", third.outcome(), outcome{2, true, nil})
	})
}

type ctxKey struct{}

func TestRunHasTheValuesOfItsFirstCallerAndNotItsCancellation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), ctxKey{}, "first"), time.Second)
		defer cancel()
		first := do(ctx, &g, "k", run.run)
		other := do(context.WithValue(t.Context(), ctxKey{}, "other"), &g, "k", never(t))
		expect.ErrorIs(t, first.outcome().err, context.DeadlineExceeded)
		runCtx := <-run.began
		expect.Equal(t, "its value", runCtx.Value(ctxKey{}), "first")
		if _, has := runCtx.Deadline(); has || runCtx.Err() != nil {
			t.Errorf("deadline %v, error %v, want neither", has, runCtx.Err())
		}
		run.end <- 42
		other.outcome()
	})
}

func TestContextOfARunEndsWithTheRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		c := do(t.Context(), &g, "k", run.run)
		run.end <- 42
		c.outcome()
		if ctx := <-run.began; ctx.Err() == nil {
			t.Error("the context is still alive: its resources are never freed")
		}
	})
}

func TestClockStandsStillBetweenTicks(t *testing.T) {
	t.Parallel()
	var c flight.Clock
	if a, b := c.Now(), c.Now(); a != b {
		t.Errorf("Now() = %d, then %d", a, b)
	}
	if before, tick := c.Now(), c.Tick(); tick <= before {
		t.Errorf("Tick() = %d after Now() = %d", tick, before)
	}
}

func TestCallThatBeginsAfterATickIsNotBeforeIt(t *testing.T) {
	t.Parallel()
	var c flight.Clock
	if tick, now := c.Tick(), c.Now(); now < tick {
		t.Errorf("Now() = %d after Tick() = %d", now, tick)
	}
}

// Whatever one goroutine has seen of the clock, the ticks that any goroutine begins afterwards are later.
func TestTickIsLaterThanAllThatReturnedBeforeIt(t *testing.T) {
	t.Parallel()
	const workers, rounds = 8, 2000
	var c flight.Clock
	var seen atomic.Uint64 // the latest moment anybody has been told
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range rounds {
				raise(&seen, c.Now())
				before := seen.Load()
				tick := c.Tick()
				if tick <= before {
					t.Errorf("Tick() = %d, after %d had been returned", tick, before)
				}
				raise(&seen, tick)
				before = seen.Load()
				if now := c.Now(); now < before {
					t.Errorf("Now() = %d, after %d had been returned", now, before)
				}
			}
		})
	}
	all.Wait()
	expect.Equal(t, "ticks, of which no two are the same", c.Now(), workers*rounds)
}

func raise(to *atomic.Uint64, v uint64) {
	for old := to.Load(); old < v && !to.CompareAndSwap(old, v); old = to.Load() {
	}
}

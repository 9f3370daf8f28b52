package flight_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestStartedRunBelongsToNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "starter"))
		g.Start(ctx, "k", run.run)
		cancel()
		runCtx := <-run.began
		if runCtx.Err() != nil || runCtx.Value(ctxKey{}) != "starter" {
			t.Errorf("error %v, value %v", runCtx.Err(), runCtx.Value(ctxKey{}))
		}
		expect.Equal(t, "callers, where nobody waits", g.Count(nil).Callers, 0)
		run.end <- 42
	})
}

func TestStartStartsNoRunWhileOneIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		g.Start(t.Context(), "k", run.run)
		g.Start(t.Context(), "k", never(t))
		synctest.Wait()
		run.end <- 1
		synctest.Wait()
		g.Start(t.Context(), "k", run.run) // the first one is over
		run.end <- 2
		synctest.Wait()
		expect.Equal(t, "runs", run.runs(), 2)
	})
}

func TestStartedRunAnswersWhoeverJoinsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		g.Start(t.Context(), "k", run.run)
		c := do(t.Context(), &g, "k", never(t))
		expect.Equal(t, "callers", g.Count(nil).Callers, 1)
		run.end <- 42
		expect.Equal(t, "who joined", c.outcome(), outcome{42, true, nil})
	})
}

func TestStartedRunGoesOnWhenItsOnlyCallerHasLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		g.Start(t.Context(), "k", run.run)
		do(t.Context(), &g, "k", never(t)).leave()
		synctest.Wait()
		expect.ErrorIs(t, (<-run.began).Err())
		c := do(t.Context(), &g, "k", never(t))
		run.end <- 42
		expect.Equal(t, "the next caller", c.outcome(), outcome{42, true, nil})
	})
}

func TestARunThatIsKeptGoesOnWhenItsLastCallerHasLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		run := newGate()
		ctx, leave := context.WithCancel(t.Context())
		ticket, err := g.Enter(ctx, "k", run.run)
		expect.Must(t, err)
		ticket.Keep()
		leave()
		expect.Fails(t, expect.Err(ticket.Wait(ctx, nil, func(int) bool { return true })))
		again := do(t.Context(), &g, "k", never(t))
		run.end <- 42
		expect.Equal(t, "a caller that comes again", again.outcome(), outcome{42, true, nil})
	})
}

func TestStartDoesNotKeepTheRunOfCallersAlive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		ended := make(chan error, 1)
		c := do(t.Context(), &g, "k", obedient(ended))
		g.Start(t.Context(), "k", never(t))
		c.leave()
		if cause := <-ended; cause == nil {
			t.Error("no cause")
		}
	})
}

// Start may look at a run at the very moment its last caller leaves.
func TestStartDoesNotRescueARunThatIsBeingAbandoned(t *testing.T) {
	t.Parallel()
	for range 3000 {
		var g group
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		began := make(chan struct{})
		go func() {
			defer close(left)
			caller, _ := g.Enter(ctx, "k", func(ctx context.Context, _ func(int)) int {
				close(began)
				return obedient(ended)(ctx, nil)
			})
			_, _ = caller.Wait(ctx, nil, always)
		}()
		<-began
		go cancel()
		for range 20 {
			g.Start(t.Context(), "k", func(context.Context, func(int)) int { return 0 })
		}
		<-left
		g.Close()
		if cause := <-ended; errors.Is(cause, flight.ErrClosed) {
			t.Fatal("the run had no caller, and only Close ended it")
		}
	}
}

func TestCloseCancelsRunsAndWaitsForThem(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		called, started, abandoned := newGate(), newGate(), newGate()
		c := do(t.Context(), &g, "called", called.run)
		g.Start(t.Context(), "started", started.run)
		do(t.Context(), &g, "abandoned", abandoned.run).leave()
		synctest.Wait()

		closed := make(chan struct{})
		go func() {
			defer close(closed)
			g.Close()
		}()
		for _, run := range []*gate{called, started} {
			ctx := <-run.began
			<-ctx.Done()
			expect.ErrorIs(t, context.Cause(ctx), flight.ErrClosed)
		}
		for _, run := range []*gate{called, started, abandoned} {
			synctest.Wait()
			select {
			case <-closed:
				t.Error("Close has returned while a run was under way")
			default:
			}
			run.end <- 42
		}
		<-closed
		expect.Equal(t, "what the run returned", c.outcome(), outcome{42, false, nil})
		g.Close()
	})
}

func TestClosedGroupStartsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g group
		g.Close()
		expect.Equal(t, "Do", do(t.Context(), &g, "k", never(t)).outcome(), outcome{0, false, flight.ErrClosed})
		g.Start(t.Context(), "k", never(t))
	})
}

// What a run does may depend on whether somebody waits for it, also what it does first.
func TestARunThatBeginsHasItsCaller(t *testing.T) {
	t.Parallel()
	var g group
	var without atomic.Int64
	for range 20_000 {
		ticket, err := g.Enter(t.Context(), "k", func(ctx context.Context, _ func(int)) int {
			if waiters := flight.WaitersOf(ctx); waiters.Callers() != 1 || waiters.Entered() != 1 {
				without.Add(1)
			}
			return 0
		})
		expect.Must(t, err)
		_, err = ticket.Wait(t.Context(), nil, always)
		expect.Must(t, err)
	}
	expect.Equal(t, "runs without a caller", without.Load(), 0)
	g.Close()
}

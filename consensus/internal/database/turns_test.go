package database

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestTurnsAreTakenInOrderAndGivenUpWithoutATrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		ctx, cancel := context.WithCancel(t.Context())
		expect.ErrorIs(t, turns.take(ctx, "x", false))
		expect.ErrorIs(t, turns.take(ctx, "y", false))
		order := make(chan int, 3)
		for i, waiting := range []context.Context{t.Context(), ctx, t.Context()} {
			go func() { // owner: the test; ends with its turn or its context; joined by synctest
				if turns.take(waiting, "x", true) == nil {
					order <- i
				} else {
					order <- -1
				}
			}()
			synctest.Wait()
		}
		tried := make(chan error, 1)
		go func() { tried <- turns.take(t.Context(), "x", false) }() // owner: the test; ends when the lock is known to be taken; joined below
		synctest.Wait()
		expect.Equal(t, "who must not wait has an answer before it is known that the lock is taken", len(tried), 0)
		cancel()
		expect.Equal(t, "the caller that gives up", <-order, -1)
		turns.give("x")
		expect.Equal(t, "the first", <-order, 0)
		turns.tell("x")
		expect.ErrorIs(t, <-tried, store.ErrTaken)
		turns.give("x")
		expect.Equal(t, "the next", <-order, 2)
		turns.give("x")
		turns.give("y")
		expect.Equal(t, "what is left", len(turns.byName), 0)
	})
}

// A call that gives up says that others have the lock only if that was known while it waited.
func TestWhoGivesUpATurnSaysWhatIsKnownOfTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		expect.ErrorIs(t, turns.take(t.Context(), "x", true))
		givesUp := func(meanwhile func()) error {
			ctx, cancel := context.WithCancel(t.Context())
			gave := make(chan error)
			go func() { gave <- turns.take(ctx, "x", true) }() // owner: the test; ends with ctx; joined by receiving
			synctest.Wait()
			time.Sleep(time.Second)
			meanwhile()
			cancel()
			return <-gave
		}
		expect.Equal(t, "taken, when nothing was said", errors.Is(givesUp(func() {}), store.ErrTaken), false)
		expect.ErrorIs(t, givesUp(func() { turns.tell("x") }), store.ErrTaken, context.Canceled)
		expect.ErrorIs(t, givesUp(func() {}), store.ErrTaken, context.Canceled)
	})
}

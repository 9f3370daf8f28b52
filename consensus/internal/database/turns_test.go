package database

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestTurnsAreTakenInOrderAndGivenUpWithoutATrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		ctx, cancel := context.WithCancel(t.Context())
		expect.Equal(t, "a free turn", turns.take(ctx, "x", false), true)
		expect.Equal(t, "that of another name", turns.take(ctx, "y", false), true)
		expect.Equal(t, "a turn that is taken", turns.take(ctx, "x", false), false)
		order := make(chan int, 3)
		for i, waiting := range []context.Context{t.Context(), ctx, t.Context()} {
			go func() { // owner: the test; ends with its turn or its context; joined by synctest
				if turns.take(waiting, "x", true) {
					order <- i
				} else {
					order <- -1
				}
			}()
			synctest.Wait()
		}
		cancel()
		expect.Equal(t, "the caller that gives up", <-order, -1)
		turns.give("x")
		expect.Equal(t, "the first", <-order, 0)
		turns.give("x")
		expect.Equal(t, "the next", <-order, 2)
		turns.give("x")
		turns.give("y")
		expect.Equal(t, "what is left", len(turns.byName), 0)
	})
}

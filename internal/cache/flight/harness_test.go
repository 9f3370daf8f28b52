package flight_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/testing/leaks"
)

type group = flight.Group[string, int]

// gate is a run that says when it has begun and ends when the test says so; it ignores its context.
type gate struct {
	began chan context.Context
	end   chan int
}

func newGate() *gate { return &gate{began: make(chan context.Context, 8), end: make(chan int)} }

func (g *gate) run(ctx context.Context, _ func(int)) int {
	g.began <- ctx
	return <-g.end
}

// runs is how many runs have begun that the test has not looked at.
func (g *gate) runs() int { return len(g.began) }

// obedient is a run that ends when it is cancelled, and says that it has.
func obedient(ended chan<- error) func(context.Context, func(int)) int {
	return func(ctx context.Context, _ func(int)) int {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return 0
	}
}

func never(t *testing.T) func(context.Context, func(int)) int {
	return func(context.Context, func(int)) int {
		t.Error("a run that must not be")
		return 0
	}
}

func always(int) bool { return true }

type outcome struct {
	result int
	joined bool
	err    error
}

// call is a caller that waits for a run.
type call struct {
	done  chan struct{}
	leave context.CancelFunc
	got   outcome // when done is closed
}

// do begins a call and returns when it waits, or has its outcome.
func do(ctx context.Context, g *group, key string, run func(context.Context, func(int)) int) *call {
	c := &call{done: make(chan struct{})}
	ctx, c.leave = context.WithCancel(ctx)
	go func() {
		defer close(c.done)
		defer c.leave()
		t, err := g.Enter(ctx, key, run)
		result := 0
		if err == nil {
			result, err = t.Wait(ctx, nil, always)
		}
		c.got = outcome{result, t.Joined, err}
	}()
	synctest.Wait()
	return c
}

// outcome waits for it.
func (c *call) outcome() outcome {
	<-c.done
	return c.got
}

// bubble runs the test with its own goroutines only, so that synctest.Wait finds them all blocked or done.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func TestMain(m *testing.M) { leaks.Main(m) }

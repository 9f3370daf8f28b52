package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/run/yield"
)

// Tasks runs functions that somebody joins. A *sync.WaitGroup does.
type Tasks interface{ Go(f func()) }

// Bounded runs an operation on Redis under a deadline of the library's own, whatever the client's options say: go-redis
// does not let a context interrupt a read, and by default ignores its deadline. The context of op has ctx's values and
// ends when the timeout is over. Bounded returns when op has, when the timeout is over, or when ctx ends. An operation
// that is given up runs on among the tasks until the client's own time-outs end it. The caller makes sure that nobody
// waits for the tasks yet.
//
// When the process is so busy that op may have an answer and no time to say so, it gets a little longer.
func Bounded[T any](ctx context.Context, tasks Tasks, timeout time.Duration, op func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*timeout)
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1) // nobody may be waiting any more
	tasks.Go(func() {             // owner: the caller's; stop: the client's own time-outs; joined through tasks
		defer cancel()
		value, err := op(limited)
		done <- outcome{value, err}
	})
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var none T
	for reprieves := yield.Reprieves; ; reprieves-- {
		select {
		case o := <-done:
			return o.value, o.err
		case <-ctx.Done():
			return none, context.Cause(ctx)
		case <-timer.C:
		}
		if reprieves == 0 || !yield.Starved() {
			cancel()
			return none, fmt.Errorf("no answer within %v: %w", timeout.Round(time.Millisecond), context.DeadlineExceeded)
		}
		timer.Reset(timeout / yield.Reprieves)
	}
}

// Within is Bounded for an operation that has only an error.
func Within(ctx context.Context, tasks Tasks, timeout time.Duration, op func(context.Context) error) error {
	_, err := Bounded(ctx, tasks, timeout, func(ctx context.Context) (struct{}, error) { return struct{}{}, op(ctx) })
	return err
}

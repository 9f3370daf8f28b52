package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// Ended is why a context ended: its error, and its cause if that says more.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) { // nil: it has ended only now
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

const (
	firstPause   = time.Millisecond // at most, and twice as much each time
	longestPause = 64 * time.Millisecond
)

// Pause waits for a random time before another attempt, so that those who collided do not do it again; after more
// attempts, for longer. It reports whether there may be one: not when ctx ends or Close is called meanwhile.
func (l *Life) Pause(ctx context.Context, attempts int) bool {
	return l.Sleep(ctx, rand.N(min(firstPause<<min(attempts, 10), longestPause)))
}

// Sleep waits for d, and reports whether it did: not when ctx ends or Close is called meanwhile.
func (l *Life) Sleep(ctx context.Context, d time.Duration) bool {
	return sleep(d, ctx.Done(), l.Ending.Done())
}

// Until calls attempt until it reports that nothing is left to be done: after a pause of about the first, twice as long
// each time, up to the longest. When Close is called, it is called once more, at once.
func (l *Life) Until(first, longest time.Duration, attempt func() (done bool)) {
	for pause, last := first, false; !last; pause = min(2*pause, longest) {
		last = !l.Sleep(context.Background(), pause/2+rand.N(pause))
		last = attempt() || last
	}
}

// Sleep waits for d, and reports whether it did: not when ctx ends meanwhile.
func Sleep(ctx context.Context, d time.Duration) bool { return sleep(d, ctx.Done(), nil) }

func sleep(d time.Duration, left, ended <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-left:
	case <-ended:
	}
	return false
}

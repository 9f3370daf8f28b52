package lifecycle

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

const never = time.Hour

var errWhy = errors.New("why")

func TestBoundedReturnsWhatTheOperationDid(t *testing.T) {
	t.Parallel()
	var tasks sync.WaitGroup
	got, err := Bounded(t.Context(), &tasks, never, func(context.Context) (int, error) { return 7, errWhy })
	if got != 7 || !errors.Is(err, errWhy) {
		t.Errorf("got %v, %v", got, err)
	}
	tasks.Wait()
}

func TestAnOperationThatIsGivenUpRunsOnAmongTheTasks(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func() (context.Context, time.Duration, error){
		"time-out": func() (context.Context, time.Duration, error) {
			return context.Background(), time.Millisecond, context.DeadlineExceeded
		},
		"context": func() (context.Context, time.Duration, error) {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(errWhy)
			return ctx, never, errWhy
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tasks sync.WaitGroup
			release, ended := make(chan struct{}), false
			ctx, timeout, want := give()
			_, err := Bounded(ctx, &tasks, timeout, func(context.Context) (int, error) {
				<-release
				ended = true
				return 7, nil
			})
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			close(release)
			tasks.Wait()
			if !ended {
				t.Error("it was not waited for")
			}
		})
	}
}

func TestTheOperationsContextOutlivesTheCallersAndHasItsValues(t *testing.T) {
	t.Parallel()
	type key struct{}
	var tasks sync.WaitGroup
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, 1))
	cancel()
	_, _ = Bounded(ctx, &tasks, never, func(ctx context.Context) (int, error) {
		if ctx.Err() != nil || ctx.Value(key{}) != 1 {
			t.Errorf("the context has %v and %v", ctx.Err(), ctx.Value(key{}))
		}
		return 0, nil
	})
	tasks.Wait()
}

func TestTheTimeThatIsOverIsRoundedForPeople(t *testing.T) {
	t.Parallel()
	var tasks sync.WaitGroup
	release := make(chan struct{})
	_, err := Bounded(t.Context(), &tasks, 3*time.Millisecond-time.Nanosecond, func(context.Context) (int, error) {
		<-release
		return 0, nil
	})
	close(release)
	tasks.Wait()
	if err == nil || !strings.Contains(err.Error(), "no answer within 3ms") {
		t.Error(err)
	}
}

package detach

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const never = time.Hour

var errWhy = errors.New("why")

func TestDoReturnsWhatTheOperationDid(t *testing.T) {
	t.Parallel()
	var tasks sync.WaitGroup
	got, err := Do(t.Context(), &tasks, never, func(context.Context) (int, error) { return 7, errWhy }, nil)
	if got != 7 || !errors.Is(err, errWhy) {
		t.Errorf("got %v, %v", got, err)
	}
	tasks.Wait()
}

func TestAnOperationThatIsGivenUpIsHandedToLate(t *testing.T) {
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
			release, late := make(chan struct{}), 0
			ctx, timeout, want := give()
			_, err := Do(ctx, &tasks, timeout, func(context.Context) (int, error) {
				<-release
				return 7, nil
			}, func(got int, _ error) { late = got })
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			close(release)
			tasks.Wait()
			if late != 7 {
				t.Errorf("late was told of %d", late)
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
	_, _ = Do(ctx, &tasks, never, func(ctx context.Context) (int, error) {
		if ctx.Err() != nil || ctx.Value(key{}) != 1 {
			t.Errorf("the context has %v and %v", ctx.Err(), ctx.Value(key{}))
		}
		return 0, nil
	}, nil)
	tasks.Wait()
}

// ping counts who runs it.
func ping(quickly, detached *int) Op[string] {
	return func(ctx context.Context, rdb script.Processor) (string, error) {
		if _, ok := rdb.(*quick); ok {
			*quickly++
		} else {
			*detached++
		}
		cmd := redis.NewCmd(ctx, "ping")
		err := rdb.Process(ctx, cmd)
		return cmd.String(), err
	}
}

func TestWhileRedisIsQuickTheCallerAsksByItself(t *testing.T) {
	t.Parallel()
	var tasks sync.WaitGroup
	r := NewRunner(shared.Client(t), time.Second)
	quickly, detached := 0, 0
	if _, err := Run(t.Context(), &tasks, r, ping(&quickly, &detached), nil); err != nil {
		t.Fatal(err)
	}
	if quickly != 0 || detached != 1 {
		t.Error("without a connection it did not go to the background")
	}
	redistest.Await(t, "a quick one", func() bool {
		_, err := Run(t.Context(), &tasks, r, ping(&quickly, &detached), nil)
		return err == nil && quickly > 0
	})
	tasks.Wait()
}

func TestASlowReplyIsWaitedForInTheBackground(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	var tasks sync.WaitGroup
	r := NewRunner(p.Client(t), 5*time.Second)
	quickly, detached := 0, 0
	redistest.Await(t, "a quick one", func() bool {
		_, err := Run(t.Context(), &tasks, r, ping(&quickly, &detached), nil)
		return err == nil && quickly > 0
	})
	lost := p.On(redistest.Command("ping"), redistest.SwallowReply).Times(1)
	detached = 0
	redistest.Await(t, "the fault", func() bool { // an earlier reply may have been slow
		_, err := Run(t.Context(), &tasks, r, ping(&quickly, &detached), nil)
		if err != nil {
			t.Errorf("the caller was told of a lost reply: %v", err)
		}
		return lost.Count() == 1
	})
	if detached == 0 {
		t.Error("it was not run again")
	}
	tasks.Wait()
}

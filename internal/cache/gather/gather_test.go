package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// stage is a Call whose loader the test has.
type stage struct {
	freed   chan struct{}
	calls   chan []string
	release chan error
	tasks   sync.WaitGroup
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{freed: make(chan struct{}, 10), calls: make(chan []string, 10), release: make(chan error, 10)}
	t.Cleanup(s.tasks.Wait)
	return s
}

func (s *stage) call(keys ...string) *Call {
	return New(context.Background(), Config{
		Go:   s.tasks.Go,
		Free: func() { s.freed <- struct{}{} },
		Limit: func(ctx context.Context, _ []string) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		},
		Run: func(_ context.Context, of []string, finish func(map[string]any, error)) {
			values := make(map[string]any)
			for _, key := range of {
				values[key] = "v:" + key
			}
			s.calls <- slices.Sorted(slices.Values(of))
			finish(values, <-s.release)
		},
	}, keys...)
}

type outcome struct {
	Result
	ok bool
}

func obtain(ctx context.Context, c *Call, key string) <-chan outcome {
	got := make(chan outcome, 1)
	go func() { // owner: the test; joined by receiving
		r, ok := c.Obtain(ctx, key)
		got <- outcome{r, ok}
	}()
	return got
}

func awaitObtained(c *Call, n int) {
	for {
		c.mu.Lock()
		waiting := c.waiting
		c.mu.Unlock()
		if waiting == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestACallForGivenKeysWaitsForAllOfThem(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.call("a", "b", "c")
	a := obtain(context.Background(), c, "a")
	awaitObtained(c, 1)
	c.Skip("b")
	cc := obtain(context.Background(), c, "c")
	expect.Equal(t, "keys", len(<-s.calls), 2)
	s.release <- nil
	expect.Equal(t, "a", (<-a).Value, any("v:a"))
	expect.Equal(t, "c", (<-cc).Value, any("v:c"))
	expect.Equal(t, "who has skipped", (<-obtain(context.Background(), c, "b")).ok, false)
}

func TestACallThatNobodyWantsGivesItsRightBackAndDoesNotRun(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.call("a", "b")
	c.Skip("a")
	c.Skip("b")
	<-s.freed
	expect.Equal(t, "calls", len(s.calls), 0)
}

func TestTheLastWhoLeavesEndsTheCallWhetherItWaitsOrRuns(t *testing.T) {
	t.Parallel()
	for _, runs := range []bool{false, true} {
		s := newStage(t)
		c := s.call("a", "b", "c")
		ctx, cancel := context.WithCancel(context.Background())
		a, b := obtain(ctx, c, "a"), obtain(ctx, c, "b")
		awaitObtained(c, 2)
		if runs {
			c.Skip("c")
			<-s.calls
		}
		cancel()
		for _, got := range []outcome{<-a, <-b} {
			expect.ErrorIs(t, got.Err, context.Canceled)
		}
		c.Skip("c")
		<-c.ctx.Done()
		s.release <- nil
		<-c.Returned
	}
}

func TestMembersDoNotWaitForALoaderThatIgnoresItsLimitButItKeepsItsRight(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.call("a")
	over := errors.New("over")
	c.cfg.Limit = func(ctx context.Context, _ []string) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(over)
		return ctx, func() {}
	}
	expect.ErrorIs(t, (<-obtain(context.Background(), c, "a")).Err, over)
	expect.Equal(t, "rights given back", len(s.freed), 0)
	s.release <- nil
	<-s.freed
}

// Those that nobody waits for any more take theirs, too: what the loader returns for others is stored.
func TestMembersTakeTheResultInTurn(t *testing.T) {
	t.Parallel()
	for gone := range 3 {
		s := newStage(t)
		keys := make([]string, 3*atOnce-1)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
		c := s.call(keys...)
		ctx, cancel := context.WithCancel(context.Background())
		var got []<-chan outcome
		for i, key := range keys {
			of := context.Background()
			if i/atOnce == gone {
				of = ctx
			}
			got = append(got, obtain(of, c, key))
			awaitObtained(c, i+1)
		}
		<-s.calls
		cancel()
		awaitObtained(c, len(keys)-min(atOnce, len(keys)-gone*atOnce))
		s.release <- nil
		for i, key := range keys {
			expect.Equal(t, key, (<-got[i]).Value, any("v:"+key))
		}
	}
}

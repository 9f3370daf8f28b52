package gather

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// stage is a Call whose right and loader the test gives.
type stage struct {
	right   chan struct{} // a value: the Call may run
	freed   chan struct{}
	calls   chan []string
	release chan error
	tasks   sync.WaitGroup
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		right: make(chan struct{}, 1), freed: make(chan struct{}, 10), calls: make(chan []string, 10), release: make(chan error, 10),
	}
	t.Cleanup(s.tasks.Wait)
	return s
}

func (s *stage) call(most int, keys ...string) *Call {
	return New(context.Background(), Config{
		Most: most, Go: s.tasks.Go,
		Take: func(ctx context.Context) (func(), bool) {
			free := func() { s.freed <- struct{}{} }
			select {
			case <-s.right: // a caller that has the right gets it, also when its context has ended
				return free, true
			default:
			}
			select {
			case <-s.right:
				return free, true
			case <-ctx.Done():
				return nil, false
			}
		},
		Limit: func(ctx context.Context, _ []Member) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		},
		Run: func(_ context.Context, of []Member, finish func(map[string]any, error)) {
			var keys []string
			values := make(map[string]any)
			for _, m := range of {
				keys = append(keys, m.Key)
				values[m.Key] = "v:" + m.Key
			}
			slices.Sort(keys)
			s.calls <- keys
			finish(values, <-s.release)
		},
	}, keys...)
}

type outcome struct {
	Result
	Fate
}

func obtain(ctx context.Context, c *Call, key string) <-chan outcome {
	got := make(chan outcome, 1)
	go func() { // owner: the test; joined by receiving
		r, f := c.Obtain(ctx, Member{Key: key})
		got <- outcome{r, f}
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

func TestALoneMemberRunsAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.call(10)
	c.Join("a")
	s.right <- struct{}{}
	s.release <- nil
	got := <-obtain(context.Background(), c, "a")
	expect.Equal(t, "value", got.Value, any("v:a"))
	<-s.freed
}

func TestMembersJoinUntilTheCallMayRunAndNoMoreThanMost(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.call(3)
	expect.Equal(t, "a", c.Join("a"), true)
	a := obtain(context.Background(), c, "a")
	awaitObtained(c, 1)
	expect.Equal(t, "while it waits for its right", c.Join("b"), true)
	expect.Equal(t, "twice", c.Join("b"), false)
	expect.Equal(t, "the last", c.Join("c"), true)
	expect.Equal(t, "one too many", c.Join("d"), false)
	b := obtain(context.Background(), c, "b")
	awaitObtained(c, 2)
	c.Skip("c")
	s.right <- struct{}{}
	expect.Equal(t, "keys", len(<-s.calls), 2)
	expect.Equal(t, "while it runs", c.Join("e"), false)
	s.release <- nil
	expect.Equal(t, "a", (<-a).Value, any("v:a"))
	expect.Equal(t, "b", (<-b).Value, any("v:b"))
	if _, fate := c.Obtain(context.Background(), Member{Key: "c"}); fate != Skipped {
		t.Error("c", fate)
	}
}

func TestAMemberThatHangsOnItsWayDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.call(3)
	c.Join("a")
	c.Join("hangs")
	s.right <- struct{}{}
	s.release <- nil
	expect.Equal(t, "a", (<-obtain(context.Background(), c, "a")).Value, any("v:a"))
	if got := <-obtain(context.Background(), c, "hangs"); got.Fate != Late {
		t.Error(got)
	}
}

func TestACallForGivenKeysWaitsForAllOfThem(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.call(0, "a", "b", "c")
	s.right <- struct{}{}
	a := obtain(context.Background(), c, "a")
	awaitObtained(c, 1)
	expect.Equal(t, "joins", c.Join("d"), false)
	c.Skip("b")
	cc := obtain(context.Background(), c, "c")
	expect.Equal(t, "keys", len(<-s.calls), 2)
	s.release <- nil
	<-a
	<-cc
}

func TestACallThatNobodyWantsGivesItsRightBackAndDoesNotRun(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.call(0, "a", "b")
	s.right <- struct{}{}
	c.Skip("a")
	c.Skip("b")
	<-s.freed
	expect.Equal(t, "calls", len(s.calls), 0)
}

func TestTheLastWhoLeavesEndsTheCallWhetherItWaitsOrRuns(t *testing.T) {
	t.Parallel()
	for _, runs := range []bool{false, true} {
		s := newStage(t)
		c := s.call(3)
		c.Join("a")
		c.Join("b")
		ctx, cancel := context.WithCancel(context.Background())
		a, b := obtain(ctx, c, "a"), obtain(ctx, c, "b")
		awaitObtained(c, 2)
		if runs {
			s.right <- struct{}{}
			<-s.calls
		}
		cancel()
		for _, got := range []outcome{<-a, <-b} {
			if !errors.Is(got.Err, context.Canceled) {
				t.Error(got)
			}
		}
		<-c.done
		<-c.ctx.Done()
		s.release <- nil
		expect.Equal(t, "joins a call that has ended", c.Join("x"), false)
	}
}

func TestMembersDoNotWaitForALoaderThatIgnoresItsLimitButItKeepsItsRight(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.call(3)
	over := errors.New("over")
	c.cfg.Limit = func(ctx context.Context, _ []Member) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(over)
		return ctx, func() {}
	}
	c.Join("a")
	s.right <- struct{}{}
	if got := <-obtain(context.Background(), c, "a"); !errors.Is(got.Err, over) {
		t.Error(got)
	}
	expect.Equal(t, "rights given back", len(s.freed), 0)
	s.release <- nil
	<-s.freed
}

func TestACollectorMakesANewCallWhenTheOldOneIsFull(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var c Collector[*Call]
	made := 0
	join := func(key string) *Call { return c.Join(key, func() *Call { made++; return s.call(2) }) }
	first := join("a")
	expect.Equal(t, "the second", join("b") == first, true)
	expect.Equal(t, "the third", join("c") == first, false)
	expect.Equal(t, "calls", made, 2)
}

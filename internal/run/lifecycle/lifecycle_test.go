package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestCloseWaitsForWhatHasBegunAndForWhatThatAdded(t *testing.T) {
	t.Parallel()
	l := New()
	if !l.Begin() {
		t.Fatal("a new life is closed")
	}
	release, closed := make(chan struct{}), make(chan struct{})
	l.Go(func() { <-release })
	go func() { // owner: the test; ends with Close; joined by receiving
		defer close(closed)
		l.Close(context.Canceled, nil)
	}()
	<-l.Ending.Done()
	if l.Begin() {
		t.Error("a call began after Close")
	}
	l.Done()
	select {
	case <-closed:
		t.Error("Close did not wait for the task")
	default:
	}
	close(release)
	<-closed
	l.Close(context.Canceled, nil)
}

func TestATaskMayBeginUntilCloseReturnsAndIsRefusedThen(t *testing.T) {
	t.Parallel()
	l := New()
	entered := false
	l.Close(context.Canceled, func() {
		if entered = l.Enter(); entered {
			l.Leave()
		}
	})
	if !entered {
		t.Error("a task was refused before Close returned")
	}
	if l.Enter() {
		t.Error("a task began after Close has returned")
	}
}

// Run it with -race: a WaitGroup that is added to while it is waited for is a race, and may panic.
func TestTasksBesideCloseAreEitherJoinedOrRefused(t *testing.T) {
	t.Parallel()
	for range 200 {
		l := New()
		joined := 0 // written by tasks that Close has joined only
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { // owner: the test; ends by itself; joined below
				if l.Enter() {
					mu.Lock()
					joined++
					mu.Unlock()
					l.Leave()
				}
			})
		}
		l.Close(context.Canceled, nil)
		mu.Lock()
		at := joined
		mu.Unlock()
		all.Wait()
		if joined != at {
			t.Fatal("Close returned before a task that it let begin")
		}
	}
}

func TestAPauseEndsWithTheContextAndWithTheLife(t *testing.T) {
	t.Parallel()
	l := New()
	ctx, cancel := context.WithCancel(t.Context())
	if !l.Pause(ctx, 0) {
		t.Error("a pause was cut short")
	}
	cancel()
	for l.Pause(ctx, 10) { // a short one may be over first
	}
	l.Close(context.Canceled, nil)
	for l.Pause(t.Context(), 10) {
	}
}

func TestAlarmRingsAtTheEarliestOfItsTimesAndLaterOnesLeaveItAsItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var rung []time.Duration
		a := NewAlarm(func() { rung = append(rung, time.Since(began)) })
		for _, after := range []time.Duration{3 * time.Hour, time.Hour, time.Hour, 2 * time.Hour, 5 * time.Hour} {
			a.Set(began.Add(after))
		}
		expect.Equal(t, "set to", a.at, began.Add(time.Hour))
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		expect.Equal(t, "times that it rang", len(rung), 1)
		expect.Equal(t, "rang", rung[0], time.Hour)

		a.Rung()
		a.Set(began.Add(11 * time.Hour))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		expect.Equal(t, "times that it rang", len(rung), 2)

		a.Rung()
		a.Set(time.Now().Add(time.Hour))
		a.Stop()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		expect.Equal(t, "times that it rang once it was stopped", len(rung), 2)
	})
}

const never = time.Hour

var errWhy = errors.New("why")

func TestBoundedReturnsWhatTheOperationDid(t *testing.T) {
	t.Parallel()
	var tasks sync.WaitGroup
	expect.Returns(t, 7, errWhy)(Bounded(t.Context(), &tasks, never, func(context.Context) (int, error) { return 7, errWhy }))
	tasks.Wait()
}

func TestAnOperationThatIsGivenUpRunsOnAmongTheTasks(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func() (context.Context, time.Duration, error){
		"time-out": func() (context.Context, time.Duration, error) {
			return context.Background(), time.Millisecond, context.DeadlineExceeded
		},
		"context": func() (context.Context, time.Duration, error) {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(errWhy)
			return ctx, never, errWhy
		},
	}, func(t *testing.T, _ string, give func() (context.Context, time.Duration, error)) {
		var tasks sync.WaitGroup
		release, ended := make(chan struct{}), false
		ctx, timeout, want := give()
		_, err := Bounded(ctx, &tasks, timeout, func(context.Context) (int, error) {
			<-release
			ended = true
			return 7, nil
		})
		expect.ErrorIs(t, err, want)
		close(release)
		tasks.Wait()
		if !ended {
			t.Error("it was not waited for")
		}
	})
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
	expect.Says(t, err, "no answer within 3ms")
}

var errEnd = errors.New("the end")

func TestCloseEndsCallsLeasesAndTasksInThisOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var story []string
		tell := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			story = append(story, what)
		}
		f := NewLender(func(l string, cause error) { tell(l + " is aborted: " + cause.Error()) })
		if !f.Begin() {
			t.Fatal("it does not begin")
		}
		task := make(chan struct{})
		f.Go(func() { <-task; tell("task") })
		go func() {
			<-f.Ending.Done()
			tell("call: " + context.Cause(f.Ending).Error())
			f.Add("late lease", func() {})
			f.Add("removed", func() {})
			f.Remove("removed")
			f.Done()
		}()
		closed := make(chan struct{})
		go func() {
			f.Close(errEnd)
			close(closed)
		}()
		synctest.Wait()
		if f.Begin() {
			t.Error("a call begins after the end")
		}
		close(task)
		<-closed
		f.Close(errEnd)
		expect.Equal(t, "story", strings.Join(story, ", "), "call: the end, late lease is aborted: the end, task")
	})
}

func TestLeasesAreThoseThatWereAddedAndNotRemoved(t *testing.T) {
	t.Parallel()
	f := NewLender(func(int, error) {})
	for i := range 3 {
		begun := false
		f.Add(i, func() { begun = true })
		if !begun {
			t.Error("a lease was added and did not begin")
		}
	}
	f.Remove(1)
	held := f.Held()
	slices.Sort(held)
	if !slices.Equal(held, []int{0, 2}) {
		t.Errorf("%v are held", held)
	}
	f.Close(errEnd)
}

package lifecycle

import (
	"context"
	"sync"
	"testing"

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

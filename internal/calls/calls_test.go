package calls

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCloseWaitsForWhatHasBegunAndForWhatThatAdded(t *testing.T) {
	t.Parallel()
	l := New()
	if !l.Begin() {
		t.Fatal("a new life is closed")
	}
	release, closed := make(chan struct{}), make(chan struct{})
	l.Tasks.Go(func() { <-release })
	go func() { // owner: the test; ends with Close; joined by receiving
		defer close(closed)
		l.Close()
	}()
	<-l.ending
	if l.Begin() {
		t.Error("a call began after Close")
	}
	l.Tasks.Done()
	select {
	case <-closed:
		t.Error("Close did not wait for the task")
	default:
	}
	close(release)
	<-closed
	l.Close()
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
	l.Close()
	for l.Pause(t.Context(), 10) {
	}
}

package life

import (
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
	<-l.Ending()
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

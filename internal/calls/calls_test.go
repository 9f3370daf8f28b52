package calls

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCloseWaitsForWhatHasBegunAndForWhatThatAdded(t *testing.T) {
	t.Parallel()
	c := New()
	if !c.Begin() {
		t.Fatal("new calls are closed")
	}
	release, closed := make(chan struct{}), make(chan struct{})
	c.Tasks.Go(func() { <-release })
	go func() { // owner: the test; ends with Close; joined by receiving
		defer close(closed)
		c.Close()
	}()
	<-c.Ending()
	if c.Begin() {
		t.Error("a call began after Close")
	}
	c.Tasks.Done()
	select {
	case <-closed:
		t.Error("Close did not wait for the task")
	default:
	}
	close(release)
	<-closed
	c.Close()
}

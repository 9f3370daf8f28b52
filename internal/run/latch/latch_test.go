package latch_test

import (
	"testing"

	"github.com/cacheguard/go/internal/run/latch"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestLatchTellsThatItIsLateOnceAndThenThatItIsDone(t *testing.T) {
	t.Parallel()
	var l latch.Latch
	l.Make()
	if closed(l.Early()) {
		t.Fatal("it is late, or done, before anything has happened")
	}
	l.Late()
	l.Late()
	if !closed(l.Early()) || closed(l.After()) {
		t.Error("what is late is not told so, or is told that it is done")
	}
	l.Done()
	if !closed(l.After()) {
		t.Error("what was late is not done")
	}
}

func TestLatchThatIsDoneIsNeverLate(t *testing.T) {
	t.Parallel()
	var l latch.Latch
	l.Make()
	l.Done()
	l.Late()
	if !closed(l.Early()) || l.After() != nil {
		t.Error("it is not done")
	}
}

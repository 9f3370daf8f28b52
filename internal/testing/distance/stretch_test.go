package distance_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/distance"
)

// A hundred chunks that come out a tenth of a second later take a tenth of a second in all, not ten seconds.
func TestManyAreUnderWayAtOnce(t *testing.T) {
	t.Parallel()
	const delay, n = 100 * time.Millisecond, 100
	var out bytes.Buffer
	s, err := distance.NewStretch(&out, delay)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range n {
		send(t, s, "x")
	}
	if err := s.End(); err != nil || out.Len() != n {
		t.Fatal(out.Len(), err)
	}
	if took := time.Since(began); took < delay || took > n*delay/4 {
		t.Errorf("took %v", took)
	}
}

// dam takes nothing until it is opened.
type dam struct {
	open chan struct{}
	bytes.Buffer
}

func (d *dam) Write(p []byte) (int, error) {
	<-d.open
	return d.Buffer.Write(p)
}

func TestAChangedDelayLeavesTheOrder(t *testing.T) {
	t.Parallel()
	d := &dam{open: make(chan struct{})}
	s, err := distance.NewStretch(d, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	send(t, s, "a")
	s.Delay(0)
	send(t, s, "b") // behind a, though it has no delay
	close(d.open)
	if err := s.End(); err != nil || d.String() != "ab" {
		t.Fatalf("%q, %v", d.String(), err)
	}
}

func TestStopDropsWhatHasNotComeOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := distance.NewStretch(&out, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	send(t, s, "x")
	s.Stop()
	if err := s.End(); !errors.Is(err, io.ErrClosedPipe) || out.Len() > 0 {
		t.Fatalf("%q, %v", out.String(), err)
	}
	if _, err := s.Write([]byte("y")); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

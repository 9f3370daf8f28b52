package distance_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/expect"
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

// silent checks that nothing arrives, neither data nor the end.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // if it is too short, the test is too kind
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("received %d bytes, %v", n, err)
	}
	_ = c.SetReadDeadline(time.Time{})
}

func TestACutHoldsUpWhatIsSentAndTellsNeitherSide(t *testing.T) {
	t.Parallel()
	for _, roundTrip := range []time.Duration{0, time.Millisecond} {
		client, server, p := connected(t, roundTrip)
		send(t, client, "before")
		receive(t, server, "before")
		p.Cut(true)
		send(t, client, "request")
		send(t, server, "answer")
		silent(t, server)
		silent(t, client)
		if err := server.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		silent(t, client)
		p.Cut(false)
		receive(t, server, "request")
		receive(t, client, "answer")
		if n, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %d bytes, %v", n, err)
		}
	}
}

func TestAConnectionThatIsMadeInACutReachesTheServerAfterIt(t *testing.T) {
	t.Parallel()
	addr, accept := upstream(t)
	p := started(t, addr, 0)
	p.Cut(true)
	client := dial(t, p.Addr())
	send(t, client, "request")
	silent(t, client)
	p.Cut(false)
	receive(t, accept(), "request")
	expect.Equal(t, "connections of clients", p.Accepted(), 1)
}

func TestAProxyThatIsCutCanBeClosed(t *testing.T) {
	t.Parallel()
	client, server, p := connected(t, 0)
	p.Cut(true)
	send(t, client, "request")
	silent(t, server)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestBreakClosesWhatThereIsAndLetsNewConnectionsIn(t *testing.T) {
	t.Parallel()
	addr, accept := upstream(t)
	p := started(t, addr, 0)
	client := dial(t, p.Addr())
	server := accept()
	send(t, client, "before")
	receive(t, server, "before")
	p.Break()
	for _, c := range []net.Conn{client, server} {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("received %d bytes", n)
		}
	}
	again := dial(t, p.Addr())
	send(t, again, "after")
	receive(t, accept(), "after")
}

func TestAServerAtASocketOfUnixIsReached(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "far-") //nolint:usetesting // its path has to fit into a socket's address
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is in the temporary directory
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := started(t, dir+"/s", 0)
	client := dial(t, p.Addr())
	send(t, client, "request")
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	receive(t, server, "request")
	if n, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d bytes, %v", n, err)
	}
}

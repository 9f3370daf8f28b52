package distance_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestMain(m *testing.M) {
	distance.Main()
	leaks.Main(m)
}

// upstream is a server whose connections the test takes.
func upstream(t *testing.T) (addr string, accept func() *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), func() *net.TCPConn {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c.(*net.TCPConn)
	}
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// started is a proxy before the upstream.
func started(t *testing.T, upstream string, roundTrip time.Duration) *distance.Proxy {
	t.Helper()
	p, err := distance.Start(upstream, roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() }) // a test may have closed it
	return p
}

// connected is both ends of a connection through a proxy.
func connected(t *testing.T, roundTrip time.Duration) (client, server *net.TCPConn, p *distance.Proxy) {
	t.Helper()
	addr, accept := upstream(t)
	p = started(t, addr, roundTrip)
	client = dial(t, p.Addr())
	return client, accept(), p
}

func send(t *testing.T, to io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("received %q, %v, want %q", got, err, want)
	}
}

func TestARoundTripTakesNoLessThanItShould(t *testing.T) {
	t.Parallel()
	const roundTrip = 20 * time.Millisecond
	client, server, _ := connected(t, roundTrip)
	for range 3 {
		began := time.Now()
		send(t, client, "ping")
		receive(t, server, "ping")
		half := time.Since(began)
		send(t, server, "pong")
		receive(t, client, "pong")
		if whole := time.Since(began); half < roundTrip/2 || whole < roundTrip {
			t.Errorf("there in %v, back in %v", half, whole)
		}
	}
}

func TestToConnectTakesARoundTrip(t *testing.T) {
	t.Parallel()
	const roundTrip = 20 * time.Millisecond
	began := time.Now()
	client, server, _ := connected(t, roundTrip)
	send(t, server, "hello")
	receive(t, client, "hello")
	if took := time.Since(began); took < roundTrip*3/2 {
		t.Errorf("connected and greeted in %v", took)
	}
}

func TestBytesArriveInOrderAndWhole(t *testing.T) {
	t.Parallel()
	client, server, _ := connected(t, time.Millisecond)
	data := make([]byte, 3*4<<20) // more than is under way at once
	_, _ = rand.Read(data)        // never fails
	go func() {                   // owner: the test; ends with the data; joined by reading the end
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 1+int(rest[0])*100)
			_, _ = client.Write(rest[:n]) // a failure shows in what is received
			rest = rest[n:]
		}
		_ = client.CloseWrite()
	}()
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(data), err)
	}
}

func TestWhoReadsNothingStopsWhoWrites(t *testing.T) {
	t.Parallel()
	client, server, _ := connected(t, time.Millisecond)
	if err := client.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	sent, err := 0, error(nil)
	for chunk := make([]byte, 1<<20); err == nil && sent < 1<<30; sent += len(chunk) {
		_, err = client.Write(chunk)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes were taken that nobody read: %v", sent, err)
	}
	_ = server.Close() // which ends it
	if _, err := io.Copy(io.Discard, client); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestAnEndIsPassedOnBehindWhatWasSent(t *testing.T) {
	t.Parallel()
	client, server, _ := connected(t, 10*time.Millisecond)
	send(t, client, "last words")
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(server); string(got) != "last words" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	send(t, server, "answer") // the other direction is open
	receive(t, client, "answer")
}

func TestCloseDropsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	client, server, p := connected(t, 0)
	send(t, client, "x")
	receive(t, server, "x")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the proxy")
	}
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Error("the port outlived the proxy")
	}

	client, _, p = connected(t, 0)
	send(t, client, "x")
	if err := p.Close(); err != nil { // whether or not x has arrived
		t.Error(err)
	}
}

func TestAServerThatIsNotThereIsAClosedConnection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // that it is free is all that was wanted
	p := started(t, l.Addr().String(), 0)
	if n, err := dial(t, p.Addr()).Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("read from nobody")
	}
}

func TestAProxyOfItsOwnProcessEndsWithClose(t *testing.T) {
	t.Parallel()
	addr, accept := upstream(t)
	r, err := distance.Apart(addr, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, r.Addr())
	server := accept()
	send(t, client, "ping")
	receive(t, server, "ping")
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the proxy")
	}
}

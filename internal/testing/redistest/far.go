package redistest

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Far is a way to a server that takes its time, as a network does: what is sent arrives later, and as much of it at once as
// was sent at once. (Proxy.Delay holds up one command after another.)
type Far struct {
	listener net.Listener
	upstream string
	oneWay   time.Duration
	tasks    sync.WaitGroup // the acceptor and the pipes

	mu    sync.Mutex
	conns []net.Conn // closed at the end
}

// StartFar runs a way to the server at upstream until the test ends. A round trip on it takes as long as given, or longer.
func StartFar(tb testing.TB, upstream string, roundTrip time.Duration) *Far {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	f := &Far{listener: listener, upstream: upstream, oneWay: roundTrip / 2}
	f.tasks.Go(f.accept) // owner: the Far; stop: the listener is closed; joined at the end of the test
	tb.Cleanup(func() {
		_ = listener.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.tasks.Wait()
	})
	return f
}

// Client returns a new client that closes when tb ends. tweaks may change its options.
func (f *Far) Client(tb testing.TB, tweaks ...func(*redis.Options)) *redis.Client {
	return closeAtEnd(tb, newClient(f.listener.Addr().String(), tweaks...))
}

func (f *Far) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", f.upstream, dialTimeout)
		if err != nil {
			_ = client.Close() // the client sees that there is no server
			continue
		}
		f.mu.Lock()
		f.conns = append(f.conns, client, server)
		f.mu.Unlock()
		f.tasks.Go(func() { f.carry(client, server) }) // owner: the Far; stop: a side closes; joined at the end of the test
		f.tasks.Go(func() { f.carry(server, client) }) // as above
	}
}

// parcel is what was read at once.
type parcel struct {
	data []byte
	due  time.Time
}

// carry carries what one side sends to the other, until one of them closes.
func (f *Far) carry(from, to net.Conn) {
	under := make(chan parcel, 1024) // on their way
	f.tasks.Go(func() {              // owner: carry; stop: it closes under; joined at the end of the test
		defer func() { _ = to.Close() }() // it may be closed already, as below
		for p := range under {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close() // ends what carry reads; the rest goes nowhere
			}
		}
	})
	defer close(under)
	defer func() { _ = from.Close() }()
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if n > 0 {
			under <- parcel{data[:n], time.Now().Add(f.oneWay)}
		}
		if err != nil {
			return
		}
	}
}

// Package distance puts a server further away: a proxy that passes bytes on, each direction later by half a round trip.
// It understands nothing of what it passes, keeps the chunks as they came, and costs little: a timestamp for each chunk
// and a goroutine that sleeps until the oldest is due. It can be cut, without a word to either side. Only tests and bench import it.
package distance

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/testing/alarm"
)

// Proxy is at a distance from a server. To connect through it takes a round trip, too.
type Proxy struct {
	upstream  string
	roundTrip time.Duration
	listener  net.Listener
	tasks     sync.WaitGroup // the acceptor and the connections
	cancel    context.CancelFunc

	mu       sync.Mutex
	way      chan struct{}       // closed while anything comes through
	accepted int                 // connections of clients
	links    map[net.Conn]func() // by the client's end, what closes both
}

// Start runs a proxy before the server at upstream, host:port or the path of a socket, until Close.
func Start(upstream string, roundTrip time.Duration) (*Proxy, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{upstream: upstream, roundTrip: roundTrip, listener: l, cancel: cancel, way: make(chan struct{}), links: make(map[net.Conn]func())}
	close(p.way)
	p.tasks.Go(func() { p.accept(ctx) }) // owner: proxy; stop: Close; joined there
	return p, nil
}

// Addr is the proxy's host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close closes all connections, and drops what is under way.
func (p *Proxy) Close() error {
	p.cancel()
	err := p.listener.Close()
	p.tasks.Wait()
	return err
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // this client's bad luck
		}
		p.mu.Lock()
		p.accepted++
		p.mu.Unlock()
		p.tasks.Go(func() { p.serve(ctx, client) }) // owner: proxy; stop: an end closes, or Close; joined by Close
	}
}

// serve passes on what the two ends send until both have ended.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }() // both have ended
	if p.through(ctx) != nil {
		return
	}
	server, err := p.dial(ctx)
	if err != nil {
		return // the client sees that there is no server
	}
	defer func() { _ = server.Close() }()
	stop := func() {
		_ = client.Close()
		_ = server.Close()
	}
	defer context.AfterFunc(ctx, stop)()
	defer p.list(client, stop)()
	if err := p.connect(ctx); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.pass(ctx, server, client, stop) }) // owner: serve; stop: as serve; joined below
	p.pass(ctx, client, server, stop)
	back.Wait()
}

func (p *Proxy) dial(ctx context.Context) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(p.upstream, "/") {
		network = "unix"
	}
	return new(net.Dialer).DialContext(ctx, network, p.upstream)
}

// connect takes as long as SYN and ACK would.
func (p *Proxy) connect(ctx context.Context) error {
	a, err := alarm.New()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = a.Close() })()
	defer func() { _ = a.Close() }()
	return a.Sleep(time.Now().Add(p.roundTrip))
}

// pass carries one direction until from ends, and then the end, too. An end that takes nothing more stops both directions.
func (p *Proxy) pass(ctx context.Context, from, to net.Conn, stop func()) {
	s, err := NewStretch(outlet{to, stop, func() error { return p.through(ctx) }}, p.roundTrip/2)
	if err != nil {
		stop()
		return
	}
	defer context.AfterFunc(ctx, s.Stop)()
	const most = 64 << 10 // of a chunk
	buffer := make([]byte, most)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, werr := s.Write(buffer[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			break
		}
	}
	if err := s.End(); err != nil {
		stop()
		return
	}
	if p.through(ctx) == nil {
		_ = to.(interface{ CloseWrite() error }).CloseWrite() // it may have closed before
	}
}

// outlet stops the connection when it takes nothing more, while its other side may wait for what to send.
type outlet struct {
	net.Conn
	stop    func()
	through func() error
}

func (o outlet) Write(p []byte) (int, error) {
	if err := o.through(); err != nil {
		return 0, err
	}
	n, err := o.Conn.Write(p)
	if err != nil {
		o.stop()
	}
	return n, err
}

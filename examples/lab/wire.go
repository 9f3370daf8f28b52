package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/examples/internal/program"
)

// flow is what a wire does with what is sent.
type flow string

const (
	up     flow = "up"
	frozen flow = "frozen" // keeps it back, as a server does that hangs
	down   flow = "down"   // drops every connection, as a server does that has died
)

// wire is the way of one instance to Redis: a proxy that can be long, frozen and cut.
type wire struct {
	network, upstream string // the Redis
	listener          net.Listener
	tasks             sync.WaitGroup // the acceptor and the connections
	flow              flow
	late              atomic.Int64 // by so much, a time.Duration, does what the instance sends reach Redis

	gate sync.RWMutex    // read-locked while bytes pass, locked while the wire is frozen
	life context.Context //nolint:containedctx // of the connections; ends when the wire is cut
	cut  context.CancelFunc
}

// openWire listens on a port of this machine until close.
func openWire(network, upstream string, f flow) (*wire, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{network: network, upstream: upstream, listener: l}
	w.life, w.cut = context.WithCancel(context.Background())
	w.set(f)
	w.tasks.Go(w.accept) // owner: w; stop: close; joined there
	return w, nil
}

// set changes the flow. When the wire is down, no byte passes after set has returned. One goroutine at a time may call it.
func (w *wire) set(f flow) {
	if w.flow != frozen {
		w.gate.Lock()
	}
	w.flow = f
	switch {
	case f == frozen:
		return // with the gate locked
	case f == down:
		w.cut()
	case w.life.Err() != nil:
		w.life, w.cut = context.WithCancel(context.Background())
	}
	w.gate.Unlock()
}

func (w *wire) close() error {
	w.set(down)
	err := w.listener.Close()
	w.tasks.Wait()
	return err
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			w.tasks.Go(func() { w.connect(client) }) // owner: w; stop: an end closes, or down; joined by close
		}
	}
}

// connect passes on what the two ends send until one closes.
func (w *wire) connect(client net.Conn) {
	defer client.Close()
	w.gate.RLock()
	life := w.life
	w.gate.RUnlock()
	server, err := new(net.Dialer).DialContext(life, w.network, w.upstream)
	if err != nil {
		return // the client sees that its connection closes
	}
	end := func() { _, _ = client.Close(), server.Close() } // one may be closed
	defer context.AfterFunc(life, end)()
	defer end()
	var back sync.WaitGroup
	back.Go(func() { // owner: connect; stop: as connect; joined below
		defer end()
		_, _ = io.Copy(gated{client, life, &w.gate, nil}, server) // an error ends it
	})
	_, _ = io.Copy(gated{server, life, &w.gate, &w.late}, client)
	end()
	back.Wait()
}

// gated is an end of a connection that gets bytes while the gate is open.
type gated struct {
	to   io.Writer
	life context.Context //nolint:containedctx // of the connection
	gate *sync.RWMutex
	late *atomic.Int64 // nil: never
}

func (g gated) Write(p []byte) (int, error) {
	if g.late != nil && g.late.Load() > 0 {
		program.Pause(g.life, time.Duration(g.late.Load()))
	}
	g.gate.RLock()
	defer g.gate.RUnlock()
	if g.life.Err() != nil {
		return 0, g.life.Err()
	}
	return g.to.Write(p)
}

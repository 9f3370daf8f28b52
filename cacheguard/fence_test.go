package cacheguard

import (
	"context"
	"errors"
	"net"
	"sync"
)

// fence stands between clients and a primary that is none any more. A client closes its connections when it hears of the new one. But one that it
// is about to dial just then, at the address that it asked for before, it keeps.
type fence struct {
	mu     sync.Mutex
	closed string // its address; "": none
	open   map[net.Conn]string
}

func newFence() *fence { return &fence{open: make(map[net.Conn]string)} }

// dial is a Dialer.
func (f *fence) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if addr == f.closed {
		return nil, errors.Join(errors.New("fenced"), conn.Close())
	}
	f.open[conn] = addr
	return conn, nil
}

// close keeps everybody from a server, and returns how many connections to it clients had kept.
func (f *fence) close(addr string) (kept int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = addr
	for conn, to := range f.open {
		if to == addr {
			delete(f.open, conn)
			if conn.Close() == nil {
				kept++
			}
		}
	}
	return kept
}

func (f *fence) lift() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = ""
}

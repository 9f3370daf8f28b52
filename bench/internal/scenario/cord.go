package scenario

import (
	"context"
	"errors"
	"net"
	"sync"
)

// cord is an instance's only way to Redis. Cutting it is, for everybody else, the instance's death.
type cord struct {
	mu    sync.Mutex
	conns []net.Conn
	isCut bool
}

var errCut = errors.New("the cord is cut")

func (c *cord) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		return nil, errors.Join(errCut, conn.Close())
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

func (c *cord) cut() {
	c.mu.Lock()
	c.isCut = true
	conns := c.conns
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // closed already by its client
	}
}

package zookeeper

import (
	"context"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// Dialer is for zk.WithDialer. It gives a server up that accepts a connection and says nothing for a third of the session
// time-out, as a frozen one does. The client alone waits for it for almost seven session time-outs, and the session ends meanwhile.
func Dialer(sessionTimeout time.Duration) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		dialer := net.Dialer{Timeout: timeout}
		conn, err := dialer.DialContext(context.Background(), network, address)
		if err != nil {
			return nil, err
		}
		return &impatientConn{Conn: conn, patience: sessionTimeout / 3}, nil
	}
}

// impatientConn shortens the first deadline, which is for the server's greeting.
type impatientConn struct {
	net.Conn

	patience time.Duration
	greeted  bool
}

func (c *impatientConn) SetReadDeadline(t time.Time) error {
	if !c.greeted {
		c.greeted = true
		if soon := time.Now().Add(c.patience); t.After(soon) {
			t = soon
		}
	}
	return c.Conn.SetReadDeadline(t)
}

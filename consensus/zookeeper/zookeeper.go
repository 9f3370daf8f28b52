package zookeeper

import (
	"context"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cacheguard/go/consensus"
	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

type (
	// Config says how a Locker behaves.
	Config = consensus.Config

	// Locker hands out locks.
	Locker = consensus.Locker

	// Lease is a lock that is held.
	Lease = consensus.Lease

	// Hooks are called as things happen.
	Hooks = consensus.Hooks
)

// The errors of package mutex.
var (
	ErrNotAcquired = consensus.ErrNotAcquired
	ErrLeaseLost   = consensus.ErrLeaseLost
	ErrClosed      = consensus.ErrClosed
)

// New returns a Locker. It does no I/O and starts no goroutine. Config.TTL must be the session time-out that the connection was
// made with or less, and the servers must grant that: at least minSessionTimeout (two ticks, which is 4 seconds by default)
// and at most maxSessionTimeout (20 ticks). A Locker cannot see what they have granted, and believes the Config. The
// error names every field of cfg that is out of range.
func New(conn *zk.Conn, cfg Config) (*Locker, error) {
	return store.New[*Locker](conn, cfg, func(cfg Config, life *lifecycle.Life) store.Store {
		return &locks{conn: conn, cfg: cfg, life: life, opening: make(chan struct{}, 1)}
	})
}

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

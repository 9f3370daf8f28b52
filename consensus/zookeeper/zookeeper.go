package zookeeper

import (
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

package etcd

import (
	clientv3 "go.etcd.io/etcd/client/v3"

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

// New returns a Locker. It does no I/O and starts no goroutine. Config.TTL is rounded up to seconds, and etcd makes it at
// least one and a half election time-outs. The error names every field of cfg that is out of range.
func New(client *clientv3.Client, cfg Config) (*Locker, error) {
	return store.New[*Locker](client, cfg, func(cfg Config, life *lifecycle.Life) store.Store {
		return &locks{client: client, cfg: cfg, life: life, opening: make(chan struct{}, 1)}
	})
}

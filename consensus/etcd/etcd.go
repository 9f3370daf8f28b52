package etcd

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/cacheguard/go/consensus"
	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/lifecycle"
)

// What all packages of consensus share, under the names of this one.
type (
	Config = consensus.Config // how a Locker behaves
	Locker = consensus.Locker // hands out locks
	Lease  = consensus.Lease  // a lock that is held
	Hooks  = consensus.Hooks  // are called as things happen
)

// The errors are those of package mutex.
var (
	ErrNotAcquired = consensus.ErrNotAcquired
	ErrLeaseLost   = consensus.ErrLeaseLost
	ErrClosed      = consensus.ErrClosed
)

// New returns a Locker. It does no I/O and starts no goroutine. Config.TTL is rounded up to seconds, and etcd makes it at
// least one and a half election time-outs. The error names every field of cfg that is out of range.
func New(client *clientv3.Client, cfg Config) (*Locker, error) {
	return consensus.New(client, cfg, func(cfg Config, life *lifecycle.Life) store.Store {
		return &locks{client: client, cfg: cfg, life: life, opening: make(chan struct{}, 1)}
	})
}

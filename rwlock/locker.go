package rwlock

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/acl"
)

const pkg = "rwlock" // in errors

// Locker hands out read-write locks that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	locks *rw.Locker
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	locks, err := rw.New(pkg, rdb, cfg.common())
	if err != nil {
		return nil, err
	}
	return &Locker{locks}, nil
}

func (k *Locker) core() *rw.Locker {
	if k == nil || k.locks == nil {
		return &rw.Locker{Locker: locker.Nil(pkg)}
	}
	return k.locks
}

// Close ends the contexts of all leases of the Locker with ErrClosed, unlocks them, and returns when everything that the
// Locker started has ended; when Redis hangs, that takes the client's time-outs. Waiting calls return ErrClosed. The
// function given to Do or RDo must not call it. Close may be called more than once, and always returns nil.
func (k *Locker) Close() error { return k.core().Close(nil) }

// SelfCheck checks whether the Locker can do its work. Call it when a service starts. It checks that Redis can be reached,
// that its user may run each command (docs/redis.md lists them) on keys and channels that begin with the Prefix, that a lock
// can be taken and released, and that Redis evicts no keys (maxmemory-policy noeviction, if the user may run INFO). It takes
// at most until ctx ends, or 10 seconds if ctx has no deadline. The error names what was refused.
func (k *Locker) SelfCheck(ctx context.Context) error {
	return k.core().SelfCheck(ctx, acl.RWLock, func(ctx context.Context, name string) error {
		return k.Do(ctx, name, func(context.Context, *Lease) error { return nil })
	})
}

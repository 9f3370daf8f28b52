package semaphore

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/acl"
)

const pkg = "semaphore" // in errors

// Locker hands out permits that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	base    *locker.Locker
	permits int         // Config.Permits
	doors   queue.Doors // where callers wait before they queue in Redis
	alone   queue.Doors // for Config.WithoutRedis callers, each with a permit of the process's own
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	return open(rdb, cfg, nil)
}

// open is New, where more has what else is wrong.
func open(rdb Redis, cfg Config, more error) (*Locker, error) {
	base, err := locker.Open(pkg, rdb, cfg.common(), errors.Join(more, cfg.check()))
	if err != nil {
		return nil, err
	}
	return &Locker{
		base: base, permits: cfg.Permits, doors: queue.Doors{Width: min(cfg.Permits+spareWidth, mostWidth), RoundTrip: base.RoundTrip},
		alone: queue.Doors{Width: cfg.WithoutRedis},
	}, nil
}

func (k *Locker) core() *locker.Locker {
	if k == nil || k.base == nil {
		return locker.Nil(pkg)
	}
	return k.base
}

// Close ends the contexts of all leases of the Locker with ErrClosed, unlocks them, and returns when everything that the
// Locker started has ended; when Redis hangs, that takes the client's time-outs. Waiting calls return ErrClosed. The
// function given to Do must not call it. Close may be called more than once, and always returns nil.
func (k *Locker) Close() error { return k.core().Close(nil) }

// SelfCheck checks whether the Locker can do its work. Call it when a service starts. It checks that Redis can be reached,
// that its user may run each command (docs/redis.md lists them) on keys and channels that begin with the Prefix, that a
// permit can be taken and released, and that Redis evicts no keys (maxmemory-policy noeviction, if the user may run INFO).
// It takes at most until ctx ends, or 10 seconds if ctx has no deadline. The error names what was refused.
func (k *Locker) SelfCheck(ctx context.Context) error {
	return k.core().SelfCheck(ctx, acl.Semaphore, func(ctx context.Context, name string) error {
		return k.Do(ctx, name, func(context.Context, *Lease) error { return nil })
	})
}

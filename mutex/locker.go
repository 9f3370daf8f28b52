package mutex

import (
	"context"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/acl"
)

const (
	pkg = "mutex" // in errors

	fairWidth = 4 // how many callers of a process may queue for a fair lock in Redis: the next one, and some in case that one leaves
)

// Locker hands out locks that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	base    *locker.Locker
	fair    bool          // Config.Fair
	minHold time.Duration // Config.MinHold
	doors   queue.Doors   // of locks that are not fair, for one caller, which goes in until it has unlocked
	listen  sync.Once     // to revocations
	deaf    func()        // undoes listen
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	base, err := locker.Open(pkg, rdb, cfg.common(), cfg.check())
	if err != nil {
		return nil, err
	}
	width := 1
	if cfg.Fair {
		width = fairWidth
	}
	return &Locker{
		base: base, fair: cfg.Fair, minHold: max(cfg.MinHold, 0), doors: queue.Doors{Width: width, RoundTrip: base.RoundTrip}, deaf: func() {},
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
func (k *Locker) Close() error {
	return k.core().Close(func() {
		k.listen.Do(func() {})
		k.deaf()
	})
}

// start makes the process reachable for messages, when it first needs that. It does not wait for it.
func (k *Locker) start() {
	k.listen.Do(func() {
		k.base.Inbox.Start()
		k.deaf = k.base.Inbox.Notify(k.base.Config.Prefix, k.revoked)
	})
}

// revoked is called when a lock was taken away from the token.
func (k *Locker) revoked(token string) {
	for _, l := range k.base.Life.Held() {
		if l.Token == token {
			l.Lose(ErrRevoked)
		}
	}
}

// SelfCheck checks whether the Locker can do its work. Call it when a service starts. It checks that Redis can be reached,
// that its user may run each command (docs/redis.md lists them) on keys and channels that begin with the Prefix, that a lock
// can be taken and released, and that Redis evicts no keys (maxmemory-policy noeviction, if the user may run INFO). It takes
// at most until ctx ends, or 10 seconds if ctx has no deadline. The error names what was refused.
func (k *Locker) SelfCheck(ctx context.Context) error {
	return k.core().SelfCheck(ctx, acl.Mutex, func(ctx context.Context, name string) error {
		return k.Do(ctx, name, func(context.Context, *Lease) error { return nil })
	})
}

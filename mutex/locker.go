package mutex

import (
	"context"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// doorWidth is how many callers of a process may queue for a fair lock in Redis: the next one, and some in case that one
// leaves.
const doorWidth = 4

// Locker hands out locks that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	life    *lifecycle.Lender[*Lease]
	base    *locker.Base
	fair    bool          // Config.Fair
	minHold time.Duration // Config.MinHold
	queues  localQueues   // of locks that are not fair
	doors   queue.Doors   // of those that are
	listen  sync.Once     // to revocations
	deaf    func()        // undoes listen
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	life := lifecycle.NewLender((*Lease).abort)
	base, err := locker.Open("mutex", rdb, cfg.common(), cfg.check(), life.Life)
	if err != nil {
		return nil, err
	}
	k := &Locker{life: life, base: base, fair: cfg.Fair, minHold: max(cfg.MinHold, 0), deaf: func() {}}
	k.queues.roundTrip = k.base.RoundTrip
	k.doors = queue.Doors{Width: doorWidth, RoundTrip: k.base.RoundTrip}
	return k, nil
}

// Close ends the contexts of all leases of the Locker with ErrClosed, unlocks them, and returns when everything that the
// Locker started has ended; when Redis hangs, that takes the client's time-outs. Waiting calls return ErrClosed. The
// function given to Do must not call it. Close may be called more than once, and always returns nil.
func (k *Locker) Close() error {
	if k == nil {
		return nil // New failed: there is nothing to close
	}
	k.life.Close(ErrClosed)
	k.listen.Do(func() {})
	k.deaf()
	k.base.Close()
	return nil
}

func (k *Locker) begin(name string) error {
	if k == nil {
		return errNilLocker
	}
	return lockErrors.Begin(k.life.Life, name)
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
	for _, l := range k.life.Held() {
		if l.claim.token == token {
			l.hold.Lose(ErrRevoked)
		}
	}
}

// newClaim makes the claim of a call of the Locker.
func (k *Locker) newClaim(ctx context.Context, name string) *claim {
	c := newClaim(ctx, lockKey(k.base.Config.Prefix, name), k.base.Config.Instance)
	c.Locker, c.name = k, name
	return c
}

// granted returns the lease of the claim, unless that was over before it could begin.
func (c *claim) granted(ctx context.Context, q *localQueue, g queue.Grant) (*Lease, error) {
	if err := c.confirm(ctx, &g); err != nil {
		c.giveBack(q)
		return nil, lockErrors.Refused(ctx, c.name, err)
	}
	l := &Lease{from: c.Locker, life: c.life, claim: c, name: c.name, queue: q, fence: g.Fence, unlocked: c.base.Config.Hooks.Held(c.name)}
	l.since = time.Now()
	l.least.Store(int64(c.minHold))
	c.life.Add(l, func() { l.hold.Begin(ctx, c.base.Holding((*held)(l)), g.Sent, g.Length) })
	if l.Context().Err() == nil {
		return l, nil
	}
	c.abandon()
	return nil, lockErrors.TooLate(l.Context(), c.name)
}

package rwlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

// Lock waits until it has the lock of the name for writing, or ctx ends. The context bounds the wait, not how long the
// lock may be held. An error that matches ErrNotAcquired says that others had the lock until ctx ended. Any other error
// comes from Redis or the client: Lock returns it at once if Redis cannot be reached at all, or when it stays unreachable for
// longer than TTL during the wait. The caller unlocks the lease.
func (k *Locker) Lock(ctx context.Context, name string) (*Lease, error) {
	return k.told(ctx, byLock(), name)
}

// RLock is Lock for reading.
func (k *Locker) RLock(ctx context.Context, name string) (*Lease, error) {
	return k.told(ctx, byRLock(), name)
}

// TryLock takes the lock for writing if nobody has it, in one round trip, and returns ErrNotAcquired if somebody does.
func (k *Locker) TryLock(ctx context.Context, name string) (*Lease, error) {
	return k.told(ctx, byTryLock(), name)
}

// TryRLock takes the lock for reading if no writer has it or waits for it, in one round trip, and returns ErrNotAcquired
// otherwise.
func (k *Locker) TryRLock(ctx context.Context, name string) (*Lease, error) {
	return k.told(ctx, byTryRLock(), name)
}

// Do waits for the lock of the name as Lock does, and runs f while it holds it for writing. The context given to f ends
// when ctx does, and when the lease is lost; FenceFrom finds the fence in it. Do returns f's error, joined with that of
// Unlock: if f returned nil and Do does not, somebody else may have worked at the same time.
func (k *Locker) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	return k.run(ctx, byLock(), name, f)
}

// RDo is Do for reading.
func (k *Locker) RDo(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	return k.run(ctx, byRLock(), name, f)
}

func (k *Locker) run(ctx context.Context, w way, name string, f func(context.Context, *Lease) error) (err error) {
	if f == nil {
		return fmt.Errorf("rwlock: do %q: f is nil", name)
	}
	l, err := k.told(ctx, w, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	ctx, cancel := l.hold.Within(locker.WithFence(ctx, l))
	defer cancel()
	return f(ctx, l)
}

// way is how a call asks for a lock.
type way struct {
	call string // as Hooks.Begin gets it
	mode mode
	ask  func(*claim, context.Context) (queue.Grant, error)
}

func byLock() way     { return way{"Lock", writing, (*claim).wait} }
func byRLock() way    { return way{"RLock", reading, (*claim).wait} }
func byTryLock() way  { return way{"TryLock", writing, (*claim).try} }
func byTryRLock() way { return way{"TryRLock", reading, (*claim).try} }

// told asks for a lock and tells the hooks.
func (k *Locker) told(ctx context.Context, w way, name string) (*Lease, error) {
	if k == nil {
		return nil, errNilLocker
	}
	asking := k.base.Config.Hooks.Ask(ctx, w.call, name)
	l, err := k.acquire(ctx, w, name)
	asking.End(err)
	return l, err
}

func (k *Locker) acquire(ctx context.Context, w way, name string) (*Lease, error) {
	if err := k.begin(name); err != nil {
		return nil, err
	}
	defer k.life.Done()
	if ctx.Err() != nil {
		return nil, lockErrors.Refused(ctx, name, nil)
	}
	c := k.newClaim(name, w.mode)
	g, err := w.ask(c, ctx)
	if err != nil {
		return nil, lockErrors.Refused(ctx, name, err)
	}
	if err = c.confirm(ctx, &g); err != nil {
		c.Abandon()
		return nil, lockErrors.Refused(ctx, name, err)
	}
	l := c.newLease(ctx, g)
	if l.Context().Err() == nil {
		return l, nil
	}
	c.Abandon()
	return nil, lockErrors.TooLate(l.Context(), name)
}

func (c *claim) try(ctx context.Context) (queue.Grant, error) { return c.Try(ctx, ErrNotAcquired) }

// confirm makes replicas acknowledge a grant, if Config.Replicas asks for it.
func (c *claim) confirm(ctx context.Context, g *queue.Grant) error {
	return c.Confirm(ctx, func() script.Call { return c.Renewal(g.Fence) }, g)
}

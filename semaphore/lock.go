package semaphore

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/mutex"
)

// Lock waits until it has a permit of the name, or ctx ends. The context bounds the wait, not how long the permit may be held.
// If ctx ends, the error matches its error and its cause, and ErrNotAcquired only if Redis has said during the wait that others have all
// permits. Any other error comes from Redis or the client: Lock returns it at once if Redis cannot be reached at all, or when it stays unreachable for longer than TTL during the
// wait. If the process stands still for TTL before it has the answer, the error matches ErrLeaseLost. The caller unlocks the lease.
func (k *Locker) Lock(ctx context.Context, name string) (*Lease, error) {
	return leased(locker.Get(ctx, k.core(), "Lock", name, how{k, (*Locker).await, again}, ask))
}

// TryLock takes a permit if one is free and nobody waits for it, in one round trip, and returns ErrNotAcquired otherwise.
func (k *Locker) TryLock(ctx context.Context, name string) (*Lease, error) {
	return leased(locker.Get(ctx, k.core(), "TryLock", name, how{k, (*Locker).try, 0}, ask))
}

// Do waits for a permit of the name as Lock does, and runs f while it holds it. The context given to f ends when
// ctx does, and when the lease is lost. Do returns f's error, joined with that of Unlock: if f returned nil and
// Do does not, more than Permits may have worked at the same time.
func (k *Locker) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	return locker.Run(ctx, k, (*Locker).Lock, k.core(), (*Lease).core, name, f)
}

// how is how a call asks for a permit.
type how struct {
	*Locker

	ask  func(k *Locker, ctx context.Context, name string) (*locker.Lease, queue.Grant, error)
	wait time.Duration // for a permit of the process's own
}

// ask asks Redis for a permit, and while that cannot be reached, the process.
func ask(ctx context.Context, name string, h how) (*locker.Lease, queue.Grant, error) {
	l, g, err := h.ask(h.Locker, ctx, name)
	for err != nil && ctx.Err() == nil && h.isAway(err) {
		if l, g, err = h.takeAlone(ctx, name, h.wait); err == nil || h.wait == 0 {
			break
		}
		if ending := h.base.Life.Ending; ending.Err() != nil {
			return nil, g, context.Cause(ending)
		}
		l, g, err = h.ask(h.Locker, ctx, name)
	}
	return l, g, err
}

type (
	// Redis is what a Locker needs of a client.
	Redis = mutex.Redis

	// Hooks are the hooks of package mutex.
	Hooks = mutex.Hooks
)

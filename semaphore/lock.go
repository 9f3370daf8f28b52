package semaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
)

// Lock waits until it has a permit of the name, or ctx ends. The context bounds the wait, not how long the permit may be held.
// An error that matches ErrNotAcquired says that others had all permits until ctx ended. Any other error comes from Redis or the
// client: Lock returns it at once if Redis cannot be reached at all, or when it stays unreachable for longer than TTL during the
// wait. The caller unlocks the lease.
func (k *Locker) Lock(ctx context.Context, name string) (*Lease, error) {
	return k.told(ctx, "Lock", name, again, (*claim).wait)
}

// TryLock takes a permit if one is free and nobody waits for it, in one round trip, and returns ErrNotAcquired otherwise.
func (k *Locker) TryLock(ctx context.Context, name string) (*Lease, error) {
	return k.told(ctx, "TryLock", name, 0, (*claim).try)
}

// Do waits for a permit of the name as Lock does, and runs f while it holds it. The context given to f ends when
// ctx does, and when the lease is lost. Do returns f's error, joined with that of Unlock: if f returned nil and
// Do does not, more than Permits may have worked at the same time.
func (k *Locker) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) (err error) {
	if f == nil {
		return fmt.Errorf("semaphore: do %q: f is nil", name)
	}
	l, err := k.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	ctx, cancel := l.hold.Within(ctx)
	defer cancel()
	return f(ctx, l)
}

// told asks for a permit and tells the hooks.
func (k *Locker) told(
	ctx context.Context, call, name string, wait time.Duration, ask func(*claim, context.Context) (queue.Grant, error),
) (*Lease, error) {
	if k == nil {
		return nil, errNilLocker
	}
	asking := k.base.Config.Hooks.Ask(ctx, call, name)
	l, err := k.acquire(ctx, name, wait, ask)
	asking.End(err)
	return l, err
}

func (k *Locker) acquire(
	ctx context.Context, name string, wait time.Duration, ask func(*claim, context.Context) (queue.Grant, error),
) (*Lease, error) {
	if err := k.begin(name); err != nil {
		return nil, err
	}
	defer k.life.Done()
	if ctx.Err() != nil {
		return nil, lockErrors.Refused(ctx, name, nil)
	}
	c := k.newClaim(name)
	g, err := ask(c, ctx)
	for err != nil && ctx.Err() == nil && k.isAway(err) {
		c = k.newClaim(name) // the other one is abandoned
		giveBack := k.alone.take(ctx, k.life.Ending, name, k.withoutRedis, wait)
		switch {
		case giveBack != nil:
			return c.aloneLease(ctx, giveBack), nil
		case wait == 0:
			err = ErrNotAcquired
		case k.life.Ending.Err() != nil:
			err = context.Cause(k.life.Ending)
		default:
			g, err = ask(c, ctx)
		}
	}
	if err != nil {
		return nil, lockErrors.Refused(ctx, name, err)
	}
	l := c.newLease(ctx, g)
	if l.Context().Err() == nil {
		return l, nil
	}
	c.Abandon()
	return nil, lockErrors.TooLate(l.Context(), name)
}

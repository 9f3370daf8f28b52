package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/rwlock"
)

// refused returns the error of an update whose write was not called. With UpdateAnyway, it calls write if Redis failed.
func (u *update) refused(ctx context.Context, err error) error {
	g := u.guard
	if errors.Is(err, rwlock.ErrClosed) && g.cfg.WriteLock == nil || errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	if errors.Is(err, rwlock.ErrNotAcquired) {
		return fmt.Errorf("cacheguard: update %q: %w", u.keys, err)
	}
	if errors.Is(err, rwlock.ErrLeaseLost) || errors.Is(err, rwlock.ErrRevoked) { // before the answer came: Redis has not failed
		return fmt.Errorf("cacheguard: update %q: %w: %w", u.keys, rwlock.ErrNotAcquired, err)
	}
	_, is := errors.AsType[*RedisError](err)
	if !is && g.cfg.WriteLock != nil { // the lock's: a Redis of the Guard's has not failed
		return fmt.Errorf("cacheguard: update %q: %w", u.keys, err)
	}
	if !is {
		g.health.Of(g.keys.ValueKey(u.keys[0])).Record(err) // a process that only updates asks for nothing but locks
		err = g.redisError("update", u.keys[0], err)
	}
	if !g.cfg.UpdateAnyway {
		return err
	}
	return u.unlocked(ctx)
}

// unlocked calls write without the lock, and then invalidates, even if write fails or panics.
func (u *update) unlocked(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, u.guard.invalidations.send(context.WithoutCancel(ctx), u.keys)) }()
	return u.callWrite(ctx)
}

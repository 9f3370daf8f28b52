package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/rwlock"
)

// refused returns the error of an update whose write was not called. With UpdateAnyway, it calls write if Redis failed.
func (u *update) refused(ctx context.Context, err error, write func(context.Context) error) error {
	g := u.guard
	if errors.Is(err, rwlock.ErrClosed) {
		return ErrClosed
	}
	if errors.Is(err, rwlock.ErrNotAcquired) {
		return fmt.Errorf("cacheguard: update %q: %w", u.keys, err)
	}
	if _, is := errors.AsType[*RedisError](err); !is {
		err = g.redisError("update", u.keys[0], err)
	}
	if !g.cfg.UpdateAnyway {
		return err
	}
	return u.unlocked(ctx, write)
}

// unlocked calls write without the lock, and then invalidates, even if write fails or panics.
func (u *update) unlocked(ctx context.Context, write func(context.Context) error) (err error) {
	defer func() { err = errors.Join(err, u.guard.invalidations.send(context.WithoutCancel(ctx), u.keys)) }()
	return write(context.WithValue(ctx, updateKey{}, u))
}

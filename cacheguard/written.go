package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/rwlock"
)

// Written reports whether write was called, by the error of an Update, UpdateMany or Put: if it was not, nothing has changed, and the call can
// be repeated. Of an error of Intend it says that nothing was announced, so that nothing should be written. After Done, and for any other error, it
// is true: something may have been written. It is true for nil.
func Written(err error) bool {
	if called, is := errors.AsType[*calledError](err); is {
		return called.written
	}
	return !errors.Is(err, ErrClosed)
}

// calledError is an error that says whether write was called. The outermost counts: the write of one Update may return the error of another.
type calledError struct {
	error
	written bool
}

func (e *calledError) Unwrap() error { return e.error }

// notCalled marks an error of a call that has not called write.
func notCalled(err error) error {
	if err == ErrClosed { //nolint:errorlint // itself: it says so, and callers may compare it
		return err
	}
	return &calledError{err, false}
}

// wasCalled marks an error of a call that has called write, if that is needed.
func wasCalled(err error) error {
	if Written(err) {
		return err
	}
	return &calledError{err, true}
}

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
	defer func() { err = errors.Join(err, u.guard.invalidations.Send(context.WithoutCancel(ctx), u.keys)) }()
	return u.callWrite(ctx)
}

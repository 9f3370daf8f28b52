package update

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// errOverdue is why the context of a write under a WriteLock ends when UpdateTimeout is over.
var errOverdue = fmt.Errorf("write took longer than UpdateTimeout: %w", lifecycle.ErrLeaseLost)

// underWriteLock runs f under Config.WriteLock of all keys. The lock is the user's and knows neither Close nor UpdateTimeout.
func (u *Update) underWriteLock(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(u.of.Life.Ending, func() { cancel(u.of.Closed) })()
	return u.fenced(ctx, u.keys, func(ctx context.Context) error {
		if limit := u.of.Timeout; limit >= 0 {
			var end context.CancelFunc
			ctx, end = context.WithTimeoutCause(ctx, limit, errOverdue)
			defer end()
		}
		err := f(ctx)
		if u.began && errors.Is(context.Cause(ctx), errOverdue) {
			err = errors.Join(err, fmt.Errorf("cacheguard: update %v: %w", errs.Names(u.keys), errOverdue))
		}
		if u.of.IsRedis(err) && !u.began && u.of.Anyway {
			u.began = true
			return u.unlocked(ctx) // without the intents, but not without the lock
		}
		return err
	})
}

// fence is a number that a WriteLock gave, and that does not change.
type fence int64

// Fence is the number.
func (f fence) Fence() int64 { return int64(f) }

// fenced takes the locks of the keys, one after the other.
func (u *Update) fenced(ctx context.Context, keys []string, f func(context.Context) error) error {
	if len(keys) == 0 {
		return f(ctx)
	}
	name := u.of.Prefix + ":" + keys[0]
	return u.of.WriteLock.DoFenced(ctx, name, func(ctx context.Context, number int64) error {
		return u.fenced(locker.WithFence(ctx, fence(number)), keys[1:], f)
	})
}

// runInProcess is Update without Redis, under locks of this Guard.
func (u *Update) runInProcess(ctx context.Context) (err error) {
	release, ok := u.of.InProcess.Locks.Acquire(ctx, u.of.Life.Ending.Done(), u.keys)
	switch {
	case ok:
	case u.of.Life.Ending.Err() != nil:
		return u.of.Closed
	default:
		return fmt.Errorf("cacheguard: update %v: %w", errs.Names(u.keys), NotWritten(ctx))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := u.untilTimeout(func() {
		cancel(lifecycle.ErrLeaseLost)
		release()
	})
	stopped := make(chan struct{})
	u.of.Life.Go(func() { // owner: the Guard; stop: the end of the write; joined by Close
		select {
		case <-u.of.Life.Ending.Done():
			cancel(lifecycle.ErrLockClosed)
		case <-stopped:
		}
	})
	u.of.InProcess.Overtake()
	defer func() { // also when write panics
		close(stopped)
		u.of.InProcess.Overtake()
		err = errors.Join(err, stop())
		release()
	}()
	return u.callWrite(ctx)
}

package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/fence"
	"github.com/cacheguard/go/rwlock"
)

// WriteLock is a lock that Update can hold, such as *mutex.Locker, *mutex.Quorum, and the Lockers of consensus/etcd,
// consensus/zookeeper, consensus/postgres and consensus/mysql.
type WriteLock interface {
	// DoFenced waits for the lock of the name until ctx ends, and calls f while it holds it. The context of f ends when ctx does,
	// and when the lock is lost. The fence is greater than that of each earlier holder. It returns f's error, joined with any
	// error of the lock, as package mutex returns them.
	DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error
}

// errOverdue is why the context of a write under a WriteLock ends when UpdateTimeout is over.
var errOverdue = fmt.Errorf("write took longer than UpdateTimeout: %w", rwlock.ErrLeaseLost)

// underWriteLock runs f under Config.WriteLock of all keys. The lock is the user's and knows neither Close nor UpdateTimeout.
func (u *update) underWriteLock(ctx context.Context, f func(context.Context) error) error {
	g := u.guard
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.life.Ending, func() { cancel(ErrClosed) })()
	return u.fenced(ctx, u.keys, func(ctx context.Context) error {
		if limit := g.cfg.UpdateTimeout; limit != off {
			var end context.CancelFunc
			ctx, end = context.WithTimeoutCause(ctx, limit, errOverdue)
			defer end()
		}
		err := f(ctx)
		if u.began && errors.Is(context.Cause(ctx), errOverdue) {
			err = errors.Join(err, fmt.Errorf("cacheguard: update %q: %w", u.keys, errOverdue))
		}
		if _, is := errors.AsType[*RedisError](err); is && !u.began && g.cfg.UpdateAnyway {
			u.began = true
			return u.unlocked(ctx) // without the intents, but not without the lock
		}
		return err
	})
}

// fenced takes the locks of the keys, one after the other.
func (u *update) fenced(ctx context.Context, keys []string, f func(context.Context) error) error {
	if len(keys) == 0 {
		return f(ctx)
	}
	name := u.guard.cfg.Prefix + ":" + keys[0]
	return u.guard.cfg.WriteLock.DoFenced(ctx, name, func(ctx context.Context, number int64) error {
		return u.fenced(fence.With(ctx, fence.Number(number)), keys[1:], f)
	})
}

package cacheguard

import (
	"context"
	"fmt"

	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Update writes to the source so that no Get that begins after Update returned, in any process, returns an older value,
// even if write fails or this process dies. Write contains the commit, or use Intend: if the source changes only after
// Update returned, readers in between store the old value. What else it changes, it names with Also. docs/guarantees.md
// has the limits.
//
// Update waits for the write lock of the key until ctx ends. While write runs, up to UpdateTimeout, no load stores a
// value, and a Get that misses waits. Write's context ends when ctx does and when the lock is lost. It carries a
// fencing token (rwlock.FenceFrom): a write that checks it in the source cannot overwrite a later one. Within write, an
// Update of the key returns ErrReentrant; those of other keys can wait for each other in a circle: use UpdateMany.
//
// Update returns write's error, joined with what went wrong around it: ClassOf says what that means, Written whether
// write was called. It was not, for one, if the key is empty or has more than 65,536 bytes.
// If the error matches rwlock.ErrLeaseLost (also because of UpdateTimeout), ErrRevoked or ErrClosed, another write may
// have run beside it. With a *RedisError whose Op is invalidate, the invalidation is pending.
func (g *Guard) Update(ctx context.Context, key string, write func(context.Context) error) error {
	return g.UpdateMany(ctx, []string{key}, write)
}

// UpdateMany is Update for several keys. It takes their locks in one order everywhere, so overlapping updates do not
// wait for one another in a circle.
func (g *Guard) UpdateMany(ctx context.Context, keys []string, write func(context.Context) error) error {
	return g.update(ctx, keys, nil, write)
}

// update is UpdateMany, and with a value the Put of its one key.
func (g *Guard) update(ctx context.Context, keys []string, v write.Value, write func(context.Context) error) (err error) {
	if g == nil {
		return notCalled(errNilGuard)
	}
	called, committed := false, false
	defer func() { err = saying(err, called, committed) }()
	if err := checkUpdate(ctx, g, keys, write); err != nil {
		return err
	}
	if !g.life.Begin() {
		return ErrClosed
	}
	defer g.life.Done()
	g.named(ctx, keys, nil)
	ctx, end := g.cfg.Hooks.beginMany(ctx, TaskUpdate, keys)
	defer func() { end(End{Err: err}) }()
	called, err = g.writes.Update(ctx, union(keys), v, func(ctx context.Context) error {
		err := write(ctx)
		committed = err == nil
		return err
	})
	return err
}

func checkUpdate(ctx context.Context, g *Guard, keys []string, call func(context.Context) error) error {
	switch {
	case call == nil:
		return fmt.Errorf("cacheguard: update %v: write is nil", errs.Names(keys))
	case len(keys) == 0:
		return errNoKeys
	case ctx.Err() != nil:
		return fmt.Errorf("cacheguard: update %v: %w", errs.Names(keys), write.NotWritten(ctx))
	}
	if err := g.oneWriter(); err != nil {
		return fmt.Errorf("cacheguard: update %v: %w", errs.Names(keys), err)
	}
	for _, key := range keys {
		switch {
		case key == "":
			return errEmptyKey
		case len(key) > lifecycle.LongestName && g.cfg.WriteLock == nil: // else that lock says what it takes
			return errs.TooLong("cacheguard: key", key, lifecycle.LongestName)
		case write.Of(ctx).Includes(&g.writes, key):
			return fmt.Errorf("%w: update of %q within its update", ErrReentrant, errs.Short(key))
		}
	}
	return nil
}

// oneWriter refuses a client with which two could hold the lock of an Update.
func (g *Guard) oneWriter() error {
	if err := goredis.CheckOnePlace(g.rdb); err != nil && g.cfg.WriteLock == nil {
		return fmt.Errorf("%w, or set Config.WriteLock", err)
	}
	return nil
}

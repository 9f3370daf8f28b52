package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Update writes to the source so that no Get that begins after Update returned, in any process, returns an older value,
// even if write fails or this process dies. It is for data that changes seldom and must not be read stale.
//
// Write contains the commit, or use Intend: if the source changes only after Update returned, readers in between store
// the old value. A write that changes more than its keys names that with Also.
//
// Update waits for the write lock of the key (package rwlock, with the Guard's Prefix) until ctx ends. While write
// runs, up to UpdateTimeout, no load stores a value. A Get that misses waits for the end of the update, up to
// WaitTimeout, and then loads without storing.
//
// The context given to write ends when ctx does and when the lock is lost. It carries a fencing token
// (rwlock.FenceFrom): a write that checks the token in the source cannot overwrite a later one, even if this process
// was paused. With this context, a Get of the key does not wait, and an Update of it returns ErrReentrant. What a Get
// of any key loads with it is for write alone, as with Intent.Context, because it may not be committed yet. Updates of
// other keys within write can wait for each other in a circle; use UpdateMany instead.
//
// Update returns write's error, joined with what went wrong around it. Written tells whether write was called:
//
//   - Write was not called with an empty key or, unless Config.WriteLock takes it, one of more than 65,536 bytes, which no lock can have.
//   - Write was not called on a *redis.Ring without Config.WriteLock: two could hold the lock.
//   - Write was not called when the error matches rwlock.ErrNotAcquired (ctx ended, or a lock was lost before that) or
//     ErrClosed, or is a *RedisError whose Op is update (but see Config.UpdateAnyway). The latter comes at once while the circuit breaker is
//     open (Config.RedisTimeout).
//   - Otherwise write was called. Another Update may have run beside it when the error matches rwlock.ErrLeaseLost (also
//     because write took longer than UpdateTimeout), rwlock.ErrRevoked or rwlock.ErrClosed.
//   - With a *RedisError whose Op is invalidate, Redis did not learn of the end of the update. The invalidation is pending, as
//     after Invalidate, and nobody stores a value until the intent has expired, twice LeaseTTL after its last renewal.
//   - Any error other than these and write's means that the lock could not be released. It ends within LeaseTTL, and
//     everything else is done.
//
// A process that dies in write keeps others from storing until its intent has expired. If a process is paused for
// longer than that, then writes, and dies before Update returns, an older value can stay until its TTL. Errors, panics
// and slow writes leave nothing else behind.
func (g *Guard) Update(ctx context.Context, key string, write func(context.Context) error) error {
	return g.UpdateMany(ctx, []string{key}, write)
}

// UpdateMany is Update for several keys. It takes their locks in one order everywhere, so updates of overlapping sets
// do not wait for one another in a circle. The fence belongs to the last key in byte order. On a cluster, compare it
// only with fences of the same key, as each node has its own clock.
func (g *Guard) UpdateMany(ctx context.Context, keys []string, write func(context.Context) error) error {
	return g.update(ctx, keys, nil, write)
}

// update is UpdateMany, and with a value the Put of its one key.
func (g *Guard) update(ctx context.Context, keys []string, v write.Value, write func(context.Context) error) (err error) {
	if g == nil {
		return notCalled(errNilGuard)
	}
	called := false
	defer func() { err = saying(err, called) }()
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
	called, err = g.writes.Update(ctx, union(keys), v, write)
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

// Written reports whether write was called, by the error of an Update, UpdateMany or Put: if it was not, nothing has
// changed, and the call can be repeated. Of an error of Intend it says that nothing was announced, so that nothing
// should be written. After Done, and for any other error, it is true: something may have been written. It is true for
// nil.
func Written(err error) bool {
	var called *calledError
	if errors.As(err, &called) {
		return called.written
	}
	return !errors.Is(err, ErrClosed)
}

// calledError is an error that says whether write was called. The outermost counts: the write of one Update may return
// the error of another.
type calledError struct {
	error
	written bool
}

func (e *calledError) Unwrap() error { return e.error }

// saying marks an error with whether write was called, if that is needed.
func saying(err error, called bool) error {
	if err == nil || called && Written(err) || !called && err == ErrClosed { //nolint:errorlint // itself: it says so, and callers may compare it
		return err
	}
	return &calledError{err, called}
}

// notCalled marks an error of a call that has not called write.
func notCalled(err error) error { return saying(err, false) }

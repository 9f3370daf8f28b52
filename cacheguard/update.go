package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/rwlock"
)

// Update writes to the source so that no Get that begins after Update returned, in any process, returns an older value, even
// if write fails or this process dies. It is for data that changes seldom and must not be read stale.
//
// Write contains the commit, or use Intend: if the source changes only after Update returned, readers in between store the old value. A write that
// changes more than its keys names that with Also.
//
// Update waits for the write lock of the key (package rwlock, with the Guard's Prefix) until ctx ends. While write runs, up to
// UpdateTimeout, no load stores a value. A Get that misses waits for the end of the update, up to WaitTimeout, and then loads
// without storing.
//
// The context given to write ends when ctx does and when the lock is lost. It carries a fencing token (rwlock.FenceFrom): a
// write that checks the token in the source cannot overwrite a later one, even if this process was paused. With this context,
// a Get of the key does not wait, and an Update of it returns ErrReentrant. Updates of other keys within write can wait for
// each other in a circle; use UpdateMany instead.
//
// Update returns write's error, joined with what went wrong around it. Written tells whether write was called:
//
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
// A process that dies in write keeps others from storing until its intent has expired. If a process is paused for longer than
// that, then writes, and dies before Update returns, an older value can stay until its TTL. Errors, panics and slow writes
// leave nothing else behind.
func (g *Guard) Update(ctx context.Context, key string, write func(context.Context) error) error {
	return g.UpdateMany(ctx, []string{key}, write)
}

// UpdateMany is Update for several keys. It takes their locks in one order everywhere, so updates of overlapping sets do not
// wait for one another in a circle. The fence belongs to the last key in byte order. On a cluster, compare it only with fences
// of the same key, as each node has its own clock.
func (g *Guard) UpdateMany(ctx context.Context, keys []string, write func(context.Context) error) error {
	return g.update(ctx, keys, nil, write)
}

// update is UpdateMany, and with a putting the Put of its one key.
func (g *Guard) update(ctx context.Context, keys []string, p *putting, write func(context.Context) error) (err error) {
	if g == nil {
		return notCalled(errNilGuard)
	}
	u := &update{guard: g, keys: union(keys), token: rand.Text(), put: p, write: write, outer: updateOf(ctx)}
	defer func() {
		switch {
		case err != nil && u.called:
			err = wasCalled(err)
		case err != nil:
			err = notCalled(err)
		}
	}()
	if err := checkUpdate(ctx, g, keys, write); err != nil {
		return err
	}
	if !g.life.Begin() {
		return ErrClosed
	}
	defer g.life.Done()
	ctx, end := g.cfg.Hooks.beginMany(ctx, TaskUpdate, keys)
	defer func() { end(End{Err: err}) }()
	if g.cfg.Disabled {
		return u.runInProcess(ctx)
	}
	switch {
	case g.cfg.WriteLock != nil:
		err = u.underWriteLock(ctx, u.run)
	case slices.ContainsFunc(u.keys, g.isCutOff):
		err = health.ErrOpen // the lock is in the same Redis
	default:
		err = u.underLocks(ctx)
	}
	if u.began || err == nil {
		return err
	}
	return u.refused(ctx, err)
}

func checkUpdate(ctx context.Context, g *Guard, keys []string, write func(context.Context) error) error {
	switch {
	case write == nil:
		return fmt.Errorf("cacheguard: update %q: write is nil", keys)
	case len(keys) == 0:
		return errNoKeys
	case ctx.Err() != nil:
		return fmt.Errorf("cacheguard: update %q: %w", keys, notWritten(ctx))
	}
	for _, key := range keys {
		if key == "" {
			return errEmptyKey
		}
		if updateOf(ctx).includes(g, key) {
			return fmt.Errorf("%w: update of %q within its update", ErrReentrant, key)
		}
	}
	return nil
}

// update is an Update under way, found in the context of its write.
type update struct {
	guard  *Guard
	keys   []string
	token  string
	put    *putting
	write  func(context.Context) error
	outer  *update // in whose write this one was called
	began  bool    // write was called, with the lock and the intents
	called bool    // write was called

	also alsoIntent // what write named
}

// locked runs f with the locks of the keys, which it takes one after the other.
func (u *update) locked(ctx context.Context, keys []string, f func(context.Context) error) error {
	if len(keys) == 0 {
		return f(ctx)
	}
	return u.guard.locks.Do(ctx, keys[0], func(ctx context.Context, _ *rwlock.Lease) error {
		return u.locked(ctx, keys[1:], f)
	})
}

// run announces the update, calls write, and ends the update, even if write fails or panics.
func (u *update) run(ctx context.Context) (err error) {
	defer func() {
		u.failed(err)
		if endErr := u.end(ctx); u.began {
			err = errors.Join(err, endErr)
		}
	}()
	if err := u.begin(ctx); err != nil {
		return err
	}
	return u.announced(ctx)
}

// failed has nothing stored if write failed, or took too long.
func (u *update) failed(err error) {
	if err != nil && u.put != nil {
		u.put.written = nil
	}
}

// announced calls write, and has the intents renewed meanwhile.
func (u *update) announced(ctx context.Context) (err error) {
	overdue := u.renew()
	if ctx.Err() != nil {
		_ = overdue() // write was not called
		return notWritten(ctx)
	}
	u.began = true
	defer func() { err = errors.Join(err, overdue()) }()
	return u.callWrite(ctx)
}

// callWrite calls write, and ends what that has named, even if it fails or panics.
func (u *update) callWrite(ctx context.Context) (err error) {
	u.called = true
	defer func() { err = errors.Join(err, u.also.end(ctx)) }()
	return u.write(context.WithValue(ctx, updateKey{}, u))
}

// begin announces the update.
func (u *update) begin(ctx context.Context) error {
	if u.put != nil {
		return u.put.begin(ctx, u)
	}
	g := u.guard
	failed := g.invalidations.forget(ctx, "update", u.keys, func(key string) *script.Call {
		return g.keys.BeginUpdate(g.keys.ValueKey(key), u.token, g.invalidations.notice(key))
	})
	return joinAll(failed)
}

// renew keeps the intents renewed until the caller calls stop, but no longer than UpdateTimeout: a write that ignores its
// context must not keep others from storing for ever. Stop returns an error if UpdateTimeout was over first.
func (u *update) renew() (stop func() error) {
	g := u.guard
	intents := make([]lease.Renewal, len(u.keys))
	for i, key := range u.keys {
		intents[i] = lease.Renewal{Lease: intent{u, key}, TTL: g.keys.IntentTTL()}
		g.keeper.Keep(&intents[i])
	}
	drop := sync.OnceFunc(func() {
		for i := range intents {
			g.keeper.Drop(&intents[i])
		}
	})
	inTime := u.untilTimeout(drop)
	return func() error {
		defer drop()
		return inTime()
	}
}

// untilTimeout calls end when UpdateTimeout is over, unless the caller calls stop first. Otherwise stop returns an error.
func (u *update) untilTimeout(end func()) (stop func() error) {
	limit := u.guard.cfg.UpdateTimeout
	if limit == off {
		return func() error { return nil }
	}
	timer := time.AfterFunc(limit, end) // owner: the update; stop: stop; joined by end, which runs once
	return func() error {
		if timer.Stop() {
			return nil
		}
		return fmt.Errorf("cacheguard: update %q: write took longer than UpdateTimeout (%v), and others may have written meanwhile: %w",
			u.keys, limit, rwlock.ErrLeaseLost)
	}
}

// intent is the intent of an update on one key, as its keeper sees it.
type intent struct {
	*update
	key string
}

func (i intent) Due() script.Call {
	return i.guard.keys.RenewUpdate(i.guard.keys.ValueKey(i.key), i.token)
}
func (i intent) Kept(time.Time, int) {}
func (i intent) Lost(int)            {}

// end ends the update, even if ctx has ended. If write was called, what fails is pending from now on.
func (u *update) end(ctx context.Context) error {
	g := u.guard
	var failed map[string]*RedisError
	if u.put != nil {
		failed = u.put.end(ctx, u)
	} else {
		failed = u.sendEnd(ctx, u.keys)
	}
	if !u.began {
		return nil // the intent, if there is one, expires
	}
	return errors.Join(g.invalidations.enqueueFailed(u.keys, failed)...)
}

// sendEnd sends the end of the update of keys.
func (u *update) sendEnd(ctx context.Context, keys []string) map[string]*RedisError {
	g := u.guard
	return g.invalidations.forget(ctx, "invalidate", keys, func(key string) *script.Call {
		return g.keys.EndUpdate(g.keys.ValueKey(key), u.token, g.invalidations.notice(key))
	})
}

// notWritten is the error of an update whose context ended before write was called.
func notWritten(ctx context.Context) error {
	return fmt.Errorf("%w: %w", rwlock.ErrNotAcquired, lifecycle.Ended(ctx))
}

func joinAll(failed map[string]*RedisError) error {
	errs := make([]error, 0, len(failed))
	for _, err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

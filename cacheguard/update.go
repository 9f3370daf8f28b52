package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/detach"
	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/rwlock"
)

// Update writes to the source so that no Get that begins after Update returned, in any process, returns an older value,
// whatever becomes of write or of this process. It is for data that is written seldom and must not be read stale.
//
// It holds the write lock of the key (package rwlock, with the Guard's Prefix), for which it waits until ctx ends, and keeps
// loads from storing while write runs, up to UpdateTimeout; Get waits for the end of the update, up to WaitTimeout, and then loads without
// storing. The context given to write ends when ctx does and when the lock is lost, and carries a fencing token
// (rwlock.FenceFrom): a write that checks it in the source cannot overwrite a later one even if this process was paused. A
// Get of the key with the context given to write does not wait, an Update of it is ErrReentrant, and updates of other keys
// within write can wait for each other in a circle: UpdateMany is for that.
//
// Update returns write's error, joined with what went wrong around it:
//
//   - Write was not called when the error matches rwlock.ErrNotAcquired (ctx ended, or a lock was lost before that) or
//     ErrClosed, or is a *RedisError whose Op is update (but see Config.UpdateAnyway).
//   - Otherwise write was called. Another Update may have run beside it when the error matches rwlock.ErrLeaseLost (also
//     because write took longer than UpdateTimeout), rwlock.ErrRevoked or rwlock.ErrClosed.
//   - A *RedisError whose Op is invalidate: the end of the update could not be told to Redis. The key is owed as after
//     Invalidate, and nobody stores a value until the intent has expired, two times LeaseTTL after the last renewal.
//   - Another error than these and write's: the lock could not be given back. It ends within LeaseTTL, and all else is done.
//
// A process that dies in write keeps others from storing until its intent has expired. (One that was paused for longer than
// that, then wrote, and died before Update returned, can leave an older value until its TTL.) Errors, panics and slow writes
// leave nothing else behind.
func (g *Guard) Update(ctx context.Context, key string, write func(context.Context) error) error {
	return g.UpdateMany(ctx, []string{key}, write)
}

// UpdateMany is Update for several keys. Their locks are taken one after the other, in one order everywhere, so updates of
// overlapping sets do not wait for one another in a circle. The fence is that of the last key in byte order; the nodes of a
// cluster have clocks of their own, so there it can only be compared with fences of the same key.
func (g *Guard) UpdateMany(ctx context.Context, keys []string, write func(context.Context) error) error {
	if err := g.admitUpdate(ctx, keys, write); err != nil {
		return err
	}
	if !g.begin() {
		return ErrClosed
	}
	defer g.tasks.Done()
	u := &update{
		guard: g, keys: slices.Compact(slices.Sorted(slices.Values(keys))), token: rand.Text(), outer: updateOf(ctx),
	}
	err := u.locked(ctx, u.keys, func(ctx context.Context) error { return u.run(ctx, write) })
	if u.began || err == nil {
		return err
	}
	return u.refused(ctx, err, write)
}

func (g *Guard) admitUpdate(ctx context.Context, keys []string, write func(context.Context) error) error {
	switch {
	case g == nil:
		return errNilGuard
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
	guard *Guard
	keys  []string
	token string
	outer *update // in whose write this one was called
	began bool    // write was called, or must not be any more
}

type updateKey struct{}

func updateOf(ctx context.Context) *update {
	u, _ := ctx.Value(updateKey{}).(*update)
	return u
}

// includes reports whether the key is being updated by u, or by one that u is a part of.
func (u *update) includes(g *Guard, key string) bool {
	for ; u != nil; u = u.outer {
		if u.guard == g && slices.Contains(u.keys, key) {
			return true
		}
	}
	return false
}

// locked runs f with the locks of the keys.
func (u *update) locked(ctx context.Context, keys []string, f func(context.Context) error) error {
	if len(keys) == 0 {
		return f(ctx)
	}
	return u.guard.locks.Do(ctx, keys[0], func(ctx context.Context, _ *rwlock.Lease) error {
		return u.locked(ctx, keys[1:], f)
	})
}

// run announces the update, writes, and ends the update, whatever write did.
func (u *update) run(ctx context.Context, write func(context.Context) error) (err error) {
	g := u.guard
	begin := func(key string) *script.Call { return g.beginUpdate(key, u.token) }
	defer func() {
		if ended := u.end(ctx); u.began {
			err = errors.Join(err, ended)
		}
	}()
	if failed := g.forget(ctx, "update", u.keys, begin); len(failed) > 0 {
		return joined(failed)
	}
	overdue := u.renew()
	if ctx.Err() != nil {
		_ = overdue() // write was not called
		return notWritten(ctx)
	}
	u.began = true
	defer func() { err = errors.Join(err, overdue()) }()
	return write(context.WithValue(ctx, updateKey{}, u))
}

// renew has the intents renewed until the caller calls stop, but no longer than UpdateTimeout: a write that ignores its
// context must not keep others from storing for ever. Stop says so if that was the end.
func (u *update) renew() (stop func() error) {
	g := u.guard
	var drops []func()
	for _, key := range u.keys {
		drops = append(drops, g.keeper.Keep(&lease.Renewal{
			Call: g.keys.RenewUpdate(g.redisKey(key), u.token), TTL: g.keys.IntentTTL(), Lost: func(int) {},
		}))
	}
	drop := sync.OnceFunc(func() {
		for _, drop := range drops {
			drop()
		}
	})
	if g.cfg.UpdateTimeout == off {
		return func() error { drop(); return nil }
	}
	timer := time.AfterFunc(g.cfg.UpdateTimeout, drop) // owner: the update; stop: stop; joined by drop, which runs once
	return func() error {
		inTime := timer.Stop()
		drop()
		if inTime {
			return nil
		}
		return fmt.Errorf("cacheguard: update %q: write took longer than UpdateTimeout (%v), and others may have written meanwhile: %w",
			u.keys, g.cfg.UpdateTimeout, rwlock.ErrLeaseLost)
	}
}

// end ends the update, whatever became of ctx. What fails is owed, if there was a write.
func (u *update) end(ctx context.Context) error {
	g := u.guard
	failed := g.forget(ctx, "invalidate", u.keys, func(key string) *script.Call { return g.endUpdate(key, u.token) })
	if !u.began {
		return nil // the intent, if there is one, expires
	}
	return errors.Join(g.oweFailed(u.keys, failed)...)
}

// refused is the error of an update whose write was not called. If it is Redis' fault, the write may be called anyway.
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

// unlocked writes without the lock, and invalidates, whatever write did.
func (u *update) unlocked(ctx context.Context, write func(context.Context) error) (err error) {
	defer func() { err = errors.Join(err, u.guard.invalidate(context.WithoutCancel(ctx), u.keys)) }()
	return write(context.WithValue(ctx, updateKey{}, u))
}

// notWritten is the error of an update whose context ended before write was called.
func notWritten(ctx context.Context) error {
	return fmt.Errorf("%w: %w", rwlock.ErrNotAcquired, detach.Ended(ctx))
}

func joined(failed map[string]*RedisError) error {
	errs := make([]error, 0, len(failed))
	for _, err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

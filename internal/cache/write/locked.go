package write

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// underLocks calls write with the locks of the keys. If nobody is in the way, it takes all of them in one step with
// what announces the update, and gives them up in one step with what ends it. Otherwise it has none of them then, and
// waits for one after the other, in the order of the keys: so it never waits for a lock while it holds another that
// comes later.
func (u *Update) underLocks(ctx context.Context) error {
	held, err := u.takeTogether(ctx)
	if errors.Is(err, lifecycle.ErrNotAcquired) {
		return underEach(ctx, u.keys, u.of.Locks.Do, u.run)
	}
	if err != nil {
		return err
	}
	return u.runHeld(ctx, held)
}

// underEach calls f with the locks of the keys, which it takes one after the other.
func underEach(ctx context.Context, keys []string, lock locking, f func(context.Context) error) error {
	if len(keys) == 0 {
		return f(ctx)
	}
	return lock(ctx, keys[0], func(ctx context.Context) error { return underEach(ctx, keys[1:], lock, f) })
}

// locking calls f under the lock of a key.
type locking = func(ctx context.Context, key string, f func(context.Context) error) error

// takeTogether takes all locks and announces the update, or neither. It waits for nobody.
func (u *Update) takeTogether(ctx context.Context) ([]*locker.Queued, error) {
	w := u.of
	if w.Replicas > 0 || slices.ContainsFunc(u.keys, w.Locks.Awaited) {
		return nil, lifecycle.ErrNotAcquired
	}
	u.ask(ctx)
	all := u.told()
	held, err := w.Locks.TryLockTogether(ctx, u.keys, locker.Beside{
		Take: func(i int, ask script.Call) script.Call {
			return w.Keys.LockUpdate(ask, u.valueKey(u.keys[i]), u.text, all[i].told, u.lasting())
		},
		Undo: func(i int, release script.Call) script.Call {
			return w.Keys.UnlockUpdate(release, u.valueKey(u.keys[i]), u.text, all[i].told, 0, protocol.Filling{})
		},
	})
	for _, t := range u.on {
		t.forget(t) // also after an error, as Redis may have removed it
	}
	if u.value != nil && err == nil {
		u.generation, u.locked = protocol.GenerationOf(u.text, held[0].Lease.Fence()), time.Now()
	}
	return held, err
}

// told are requests with the next notices.
func (u *Update) told() []request {
	all := requests(u.on, u.text)
	for i := range all {
		all[i].told = all[i].notice(all[i].target)
	}
	return all
}

// runHeld calls write, and ends the update, even if write fails or panics.
func (u *Update) runHeld(ctx context.Context, held []*locker.Queued) (err error) {
	for _, h := range held {
		var leave func()
		ctx, leave = h.Lease.Within(ctx) //nolint:fatcontext // as deep as there are keys: each lock is in the context
		defer leave()
	}
	defer func() { err = u.finish(ctx, err, func() ([]request, error) { return u.endTogether(ctx, held) }) }()
	return u.announced(ctx)
}

// endTogether ends the update and gives up the locks, even if ctx has ended. A lock that was given up without that, as
// the Guard is being closed, leaves the end to a request of its own.
func (u *Update) endTogether(ctx context.Context, held []*locker.Queued) (all []request, unlocked error) {
	all = u.told()
	give := func(i int, release script.Call) script.Call {
		if errors.Is(context.Cause(held[i].Lease.Context()), lifecycle.ErrLeaseLost) {
			u.filling = protocol.Filling{} // a Put whose lease was lost stores nothing
		}
		return u.of.Keys.UnlockUpdate(release, u.valueKey(u.keys[i]), u.text, all[i].told, time.Since(u.locked), u.filling)
	}
	read := func(_ int, reply *script.Reply) (int, error) {
		released, status, err := protocol.ParseUnlocked(reply)
		if u.filling.TTL > 0 {
			u.value.Report(ctx, status, err)
		}
		return released, err
	}
	var notYet []target
	for i, one := range u.of.Locks.UnlockTogether(held, give, read) {
		unlocked = errs.Join(unlocked, one.Lock)
		if u.of.note("invalidate", &all[i], one.Failed); !one.Sent {
			notYet = append(notYet, u.on[i])
		}
	}
	if len(notYet) > 0 {
		u.filling = protocol.Filling{}
		all = append(all, u.sendEnd(ctx, notYet)...)
	}
	return all, unlocked
}

// underWriteLock runs the update under Config.WriteLock of all keys. The lock is the user's and knows neither Close nor
// UpdateTimeout.
func (u *Update) underWriteLock(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(u.of.Life.Ending, func() { cancel(u.of.Closed) })()
	u.expired = func() { cancel(u.overdue()) }
	return underEach(ctx, u.keys, u.fenced, func(ctx context.Context) error {
		err := u.run(ctx)
		if u.of.Owner.IsFailed(err) && !u.began && u.of.Anyway {
			u.began = true
			u.limit(u.expired)
			return u.unlocked(ctx) // without the announcement, but not without the lock
		}
		return err
	})
}

// fence is a number that a WriteLock gave, and that does not change.
type fence int64

// Fence is the number.
func (f fence) Fence() int64 { return int64(f) }

// fenced calls f under the WriteLock of a key.
func (u *Update) fenced(ctx context.Context, key string, f func(context.Context) error) error {
	return u.of.WriteLock.DoFenced(ctx, u.of.Keys.Prefix+":"+key, func(ctx context.Context, number int64) error {
		return f(locker.WithFence(ctx, fence(number)))
	})
}

// Package update runs the writes of a Guard: under the locks of their keys, and announced in Redis, so that no load stores a value meanwhile.
package update

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/cache/intent"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Config is what Updates need of their Guard, beside what intents need.
type Config struct {
	Prefix     string
	StepByStep bool // locks and announcements are not made together

	Locks     *rw.Locker
	WriteLock WriteLock // the user's, instead of those; else nil

	CutOff  func(key string) bool // reports whether Redis is not asked about the key
	IsRedis func(err error) bool  // reports whether Redis failed, and that was reported
}

// WriteLock is cacheguard.WriteLock.
type WriteLock interface {
	DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error
}

// Updates runs the updates of a Guard.
type Updates struct {
	*intent.Intents
	Config
}

// Value is what an update of one key stores at its end. It is judged by epochs that are asked for when the update has its lock.
type Value interface {
	Key() string                                                     // of the value in Redis
	Ask(ctx context.Context)                                         // begins to ask for the epochs
	Asked(ctx context.Context)                                       // waits for them, without a limit of its own
	Forget()                                                         // makes the next Ask ask again
	Drop()                                                           // has nothing stored
	Filling(ctx context.Context, generation string) protocol.Filling // without a TTL, nothing is to be stored
	Report(ctx context.Context, status string, err error)            // hears what came of it
}

// Update is an update under way, found in the context of its write.
type Update struct {
	Outer *Update // in whose write this one was called

	of     *Updates
	keys   []string
	token  string
	write  func(context.Context) error
	began  bool // write was called, with the lock and the intents
	called bool // write was called
	also   also // what write named

	value      Value     // nil: none
	generation string    // what the update must find at its end to store the value, as the proof that nothing was invalidated in between
	locked     time.Time // when the update had its lock, if it was taken together with the announcement
}

type key struct{}

// Of is the update in whose write the context was given; nil: none.
func Of(ctx context.Context) *Update {
	u, _ := ctx.Value(key{}).(*Update)
	return u
}

// Includes reports whether the key is being updated by u, or by one that u is a part of.
func (u *Update) Includes(of *Updates, key string) bool {
	for ; u != nil; u = u.Outer {
		if u.of == of && slices.Contains(u.keys, key) {
			return true
		}
	}
	return false
}

// Run updates the keys, which are sorted, and stores the value, if there is one. It reports whether write was called.
func (us *Updates) Run(ctx context.Context, keys []string, v Value, write func(context.Context) error) (called bool, err error) {
	u := &Update{of: us, keys: keys, token: rand.Text(), value: v, write: write, Outer: Of(ctx)}
	switch {
	case us.InProcess != nil:
		err = u.runInProcess(ctx)
		return u.called, err
	case us.WriteLock != nil:
		err = u.underWriteLock(ctx, u.run)
	case slices.ContainsFunc(keys, us.CutOff):
		err = breaker.ErrOpen // the lock is in the same Redis
	default:
		err = u.underLocks(ctx)
	}
	if !u.began && err != nil {
		err = u.refused(ctx, err)
	}
	return u.called, err
}

// underEach runs f with the locks of the keys, which it takes one after the other.
func (u *Update) underEach(ctx context.Context, keys []string, f func(context.Context) error) error {
	if len(keys) == 0 {
		return f(ctx)
	}
	return u.of.Locks.Do(ctx, keys[0], func(ctx context.Context) error {
		return u.underEach(ctx, keys[1:], f)
	})
}

// run announces the update, calls write, and ends the update, even if write fails or panics.
func (u *Update) run(ctx context.Context) (err error) {
	defer func() {
		u.failed(err)
		if endErr := u.end(ctx); u.began {
			err = errs.Join(err, endErr)
		}
	}()
	if err := u.begin(ctx); err != nil {
		return err
	}
	return u.announced(ctx)
}

// failed has nothing stored if write failed, or took too long.
func (u *Update) failed(err error) {
	if err != nil && u.value != nil {
		u.value.Drop()
	}
}

// announced calls write, and has the intents renewed meanwhile.
func (u *Update) announced(ctx context.Context) (err error) {
	overdue := u.renew()
	if ctx.Err() != nil {
		_ = overdue() // write was not called
		return NotWritten(ctx)
	}
	u.began = true
	defer func() { err = errs.Join(err, overdue()) }()
	return u.callWrite(ctx)
}

// callWrite calls write, and ends what that has named, even if it fails or panics.
func (u *Update) callWrite(ctx context.Context) (err error) {
	u.called = true
	defer func() { err = errs.Join(err, u.also.end(ctx)) }()
	return u.write(context.WithValue(ctx, key{}, u))
}

// begin announces the update.
func (u *Update) begin(ctx context.Context) error {
	if u.value != nil {
		return u.beginPut(ctx)
	}
	failed := u.of.OfKeys.Forget(ctx, "update", u.keys, func(key, notice string) *script.Call {
		return u.of.Keys.BeginUpdate(u.of.Keys.ValueKey(key), u.token, notice)
	})
	return errs.Join(slices.Collect(maps.Values(failed))...)
}

// end ends the update, even if ctx has ended. If write was called, what fails is pending from now on.
func (u *Update) end(ctx context.Context) error {
	var failed map[string]error
	if u.value != nil {
		failed = u.endPut(ctx)
	} else {
		failed = u.sendEnd(ctx, u.keys)
	}
	if !u.began {
		return nil // the intent, if there is one, expires
	}
	return errs.Join(u.of.OfKeys.EnqueueFailed(u.keys, failed)...)
}

// sendEnd sends the end of the update of keys.
func (u *Update) sendEnd(ctx context.Context, keys []string) map[string]error {
	return u.of.OfKeys.Forget(ctx, "invalidate", keys, func(key, notice string) *script.Call {
		return u.of.Keys.EndUpdate(u.of.Keys.ValueKey(key), u.token, notice)
	})
}

// NotWritten is the error of an update whose context ended before write was called.
func NotWritten(ctx context.Context) error {
	return fmt.Errorf("%w: %w", lifecycle.ErrNotAcquired, lifecycle.Ended(ctx))
}

// refused returns the error of an update whose write was not called. With UpdateAnyway, it calls write if Redis failed.
func (u *Update) refused(ctx context.Context, err error) error {
	if errors.Is(err, lifecycle.ErrLockClosed) && u.of.WriteLock == nil || errors.Is(err, u.of.Closed) {
		return u.of.Closed
	}
	if errors.Is(err, lifecycle.ErrNotAcquired) {
		return fmt.Errorf("cacheguard: update %v: %w", errs.Names(u.keys), err)
	}
	if errors.Is(err, lifecycle.ErrLeaseLost) || errors.Is(err, lifecycle.ErrRevoked) { // before the answer came: Redis has not failed
		return fmt.Errorf("cacheguard: update %v: %w: %w", errs.Names(u.keys), lifecycle.ErrNotAcquired, err)
	}
	is := u.of.IsRedis(err)
	if !is && u.of.WriteLock != nil { // the lock's: a Redis of the Guard's has not failed
		return fmt.Errorf("cacheguard: update %v: %w", errs.Names(u.keys), err)
	}
	if !is {
		u.of.OfKeys.Breakers.Of(u.of.Keys.ValueKey(u.keys[0])).Record(err) // a process that only updates asks for nothing but locks
		err = u.of.OfKeys.Failed("update", u.keys[0], err)
	}
	if !u.of.Anyway {
		return err
	}
	return u.unlocked(ctx)
}

// unlocked calls write without the lock, and then invalidates, even if write fails or panics.
func (u *Update) unlocked(ctx context.Context) (err error) {
	defer func() { err = errs.Join(err, u.of.OfKeys.Send(ctx, u.keys)) }()
	return u.callWrite(ctx)
}

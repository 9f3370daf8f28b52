package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Value is what an update of one key stores at its end. It is judged by epochs that are asked for when the update has
// its lock.
type Value interface {
	Key() string                                                     // of the value in Redis
	Ask(ctx context.Context)                                         // begins to ask for the epochs, and forgets earlier answers
	Asked(ctx context.Context)                                       // waits for them, without a limit of its own
	Filling(ctx context.Context, generation string) protocol.Filling // without a TTL, nothing is to be stored
	Report(ctx context.Context, status string, err error)            // hears what came of it
}

// Update is an update under way, found in the context of its write: an exclusive change of its keys.
type Update struct {
	*Change
	Outer *Update // in whose write this one was called

	keys    []string
	expired func()   // is called when UpdateTimeout is over
	on      []target // the keys
	write   func(context.Context) error
	began   bool                   // write was called, with the lock and the announcement
	called  bool                   // write was called
	wrote   bool                   // write has returned; guarded by the change's mutex
	also    atomic.Pointer[Change] // what write named

	value      Value            // nil: none
	generation string           // the proof, at the end, that nothing was invalidated in between
	locked     time.Time        // when the update had its lock, if it was taken together with the announcement
	filling    protocol.Filling // without a TTL, the update ends without a value
}

type updateKey struct{}

// Of is the update in whose write the context was given; nil: none.
func Of(ctx context.Context) *Update {
	u, _ := ctx.Value(updateKey{}).(*Update)
	return u
}

// Includes reports whether the key is being updated by u, or by one that u is a part of.
func (u *Update) Includes(of *Writes, key string) bool {
	for ; u != nil; u = u.Outer {
		if u.of == of && slices.Contains(u.keys, key) {
			return true
		}
	}
	return false
}

// Update updates the keys, which are sorted, and stores the value, if there is one. It reports whether write was
// called.
func (w *Writes) Update(ctx context.Context, updated []string, v Value, write func(context.Context) error) (called bool, err error) {
	u := &Update{Change: w.change(false), Outer: Of(ctx), keys: updated, value: v, write: write, expired: func() {}}
	for _, key := range updated {
		u.on = append(u.on, w.key(exclusive{keys{w}, u}, key))
	}
	defer func() { // after its own keys, even if write fails or panics
		if c := u.Named(); c != nil {
			err = errs.Join(err, c.Done(ctx))
		}
	}()
	switch {
	case w.WriteLock != nil:
		err = u.underWriteLock(ctx)
	default:
		open := slices.IndexFunc(u.on, func(t target) bool { return w.Breakers.Breaker(t.part).IsOpen() })
		if open < 0 {
			err = u.underLocks(ctx)
		} else {
			err = w.Breakers.Breaker(u.on[open].part).Refusal() // the lock is in the same Redis
		}
	}
	if !u.began && err != nil {
		err = u.refused(ctx, err)
	}
	return u.called, err
}

// run announces the update, calls write, and ends the update, even if write fails or panics.
func (u *Update) run(ctx context.Context) (err error) {
	defer func() { err = u.finish(ctx, err, func() ([]request, error) { return u.sendEnd(ctx, u.on), nil }) }()
	u.ask(ctx)
	all := requests(u.on, u.text)
	u.of.ask(ctx, "update", all, sort.announce)
	if err := failed(all); err != nil {
		return err
	}
	u.generation, _ = all[0].reply.Text() // only a value needs it
	return u.announced(ctx)
}

// ask begins to ask for the epochs that judge the value, if there is one.
func (u *Update) ask(ctx context.Context) {
	if u.value != nil {
		u.value.Ask(ctx)
	}
}

// finish returns the error of an update that has ended with err so far. If write was called, what fails of the end is
// pending from now on, and otherwise what was announced expires. If write failed, or took too long, nothing is stored.
func (u *Update) finish(ctx context.Context, err error, end func() (all []request, unlocked error)) error {
	if u.value != nil && err == nil {
		u.filling = u.value.Filling(ctx, u.generation)
	}
	all, unlocked := end()
	if u.began {
		u.of.enqueue(all, u.Named().steps()) // until an end has reached Redis, or is over, nobody stores: nothing is made of an old value
		err = errs.Join(err, failed(all))
	}
	if unlocked != nil {
		err = errs.Join(err, unlocked)
	}
	return err
}

// announced calls write, and has the announcement renewed meanwhile, but no longer than UpdateTimeout: a write that
// ignores its context must not keep others from storing for ever.
func (u *Update) announced(ctx context.Context) (err error) {
	u.of.Journal.RedisDid("update")
	if u.value != nil {
		u.value.Asked(ctx)
	}
	if ctx.Err() != nil {
		return NotWritten(ctx)
	}
	u.stands()
	u.keep(requests(u.on, u.text), true)
	u.limit(func() {
		u.warn("update stood for longer than UpdateTimeout, its write still runs and others may write")
		u.stop(true)
		u.expired()
	})
	u.began = true
	defer func() { err = errs.Join(err, u.stopped()) }()
	return u.callWrite(ctx)
}

// stands has the update counted until its write returns, also after UpdateTimeout.
func (u *Update) stands() {
	w := u.of
	w.mu.Lock()
	defer w.mu.Unlock()
	u.since, w.updates[u.Change] = time.Now(), u
}

// stopped ends the renewals. It returns an error if UpdateTimeout was over first.
func (u *Update) stopped() (err error) {
	if !u.inTime() {
		err = u.overdue()
	}
	u.Stop()
	return err
}

func (u *Update) overdue() error {
	return fmt.Errorf("cacheguard: update %v: write took longer than UpdateTimeout (%v), and others may have written meanwhile: %w",
		errs.Names(u.keys), u.of.Timeout, lifecycle.ErrLeaseLost)
}

// callWrite calls write, which names no more once it has returned.
func (u *Update) callWrite(ctx context.Context) error {
	u.called = true
	defer func() {
		u.mu.Lock()
		u.wrote = true
		u.mu.Unlock()
	}()
	return u.write(context.WithValue(ctx, updateKey{}, u))
}

// Named is the change of what the write has named; nil: nothing.
func (u *Update) Named() *Change { return u.also.Load() }

// Also names what else the write changes, and ends after its keys. Those are named already.
func (u *Update) Also(ctx context.Context, places ...Names) error {
	c, err := u.alsoBegin()
	if err != nil {
		return err
	}
	for i := range places {
		places[i].Keys = slices.DeleteFunc(slices.Clone(places[i].Keys), func(key string) bool { return slices.Contains(u.keys, key) })
	}
	return c.Announce(ctx, places...)
}

func (u *Update) alsoBegin() (*Change, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.wrote {
		return nil, ErrDone
	}
	if c := u.Named(); c != nil {
		return c, nil
	}
	u.also.Store(u.of.Begin())
	return u.Named(), nil
}

// sendEnd ends the update on the targets, even if ctx has ended.
func (u *Update) sendEnd(ctx context.Context, on []target) []request {
	all := requests(on, u.text)
	u.of.ask(ctx, "invalidate", all, sort.end)
	if u.filling.TTL > 0 && all[0].err == nil {
		status, err := all[0].reply.Text()
		u.value.Report(ctx, status, err)
	}
	return all
}

// lasting is for how long the proof for the value is kept at most; 0: there is no value.
func (u *Update) lasting() time.Duration {
	switch {
	case u.value == nil:
		return 0
	case u.of.Timeout < 0:
		return time.Hour
	}
	return u.of.Timeout
}

// valueKey is where the value is that the update of the key is about.
func (u *Update) valueKey(key string) string {
	if u.value != nil {
		return u.value.Key()
	}
	return u.of.Keys.ValueKey(key)
}

// NotWritten is the error of an update whose context ended before write was called.
func NotWritten(ctx context.Context) error {
	return fmt.Errorf("%w: %w", lifecycle.ErrNotAcquired, lifecycle.Ended(ctx))
}

// refused returns the error of an update whose write was not called. With UpdateAnyway, it calls write if Redis failed.
func (u *Update) refused(ctx context.Context, err error) error {
	w, names := u.of, errs.Names(u.keys)
	failed := w.Owner.IsFailed(err)
	switch {
	case errors.Is(err, lifecycle.ErrLockClosed) && w.WriteLock == nil || errors.Is(err, w.Closed):
		return w.Closed
	case errors.Is(err, lifecycle.ErrNotAcquired):
		return fmt.Errorf("cacheguard: update %v: %w", names, err)
	case !failed && ctx.Err() != nil: // the caller has left: nobody has said that Redis has failed, nor that others have the lock
		return fmt.Errorf("cacheguard: update %v: %w", names, NotWritten(ctx))
	case errors.Is(err, lifecycle.ErrLeaseLost) || errors.Is(err, lifecycle.ErrRevoked): // before the answer came: Redis has not failed
		return fmt.Errorf("cacheguard: update %v: %w: %w", names, lifecycle.ErrNotAcquired, err)
	case !failed && w.WriteLock != nil: // the lock's: a Redis of the Guard's has not failed
		return fmt.Errorf("cacheguard: update %v: %w", names, err)
	case !failed:
		w.Breakers.Breaker(u.on[0].part).Record(err) // a process that only updates asks for nothing but locks
		err = w.Owner.Failed("update", u.keys[0], err)
	}
	if !w.Anyway {
		return err
	}
	return u.unlocked(ctx)
}

// unlocked calls write without the lock, and then invalidates, even if write fails or panics.
func (u *Update) unlocked(ctx context.Context) (err error) {
	defer func() {
		own := u.of.targets(u.keys, nil)
		err = errs.Join(err, u.of.tell(ctx, new(Change), sort.invalidate, slices.Concat([][]target{own}, u.Named().steps())...))
	}()
	return u.callWrite(ctx)
}

package update

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// underLocks calls write with the locks of the keys. If nobody is in the way, it takes all of them in one step with what announces the update,
// and gives them up in one step with what ends it. Otherwise it has none of them then, and waits for one after the other, in the order of the
// keys: so it never waits for a lock while it holds another that comes later.
func (u *Update) underLocks(ctx context.Context) error {
	held, err := u.takeTogether(ctx)
	if errors.Is(err, lifecycle.ErrNotAcquired) {
		return u.underEach(ctx, u.keys, u.run)
	}
	if err != nil {
		return err
	}
	return u.runHeld(ctx, held)
}

// takeTogether takes all locks and announces the update, or neither. It waits for nobody.
func (u *Update) takeTogether(ctx context.Context) ([]*locker.Queued, error) {
	if u.of.StepByStep || slices.ContainsFunc(u.keys, u.of.Locks.Awaited) {
		return nil, lifecycle.ErrNotAcquired
	}
	lasting := time.Duration(0)
	if u.value != nil {
		lasting = u.lasting()
		u.value.Ask(ctx)
	}
	notices := u.notices()
	held, err := u.of.Locks.TryLockTogether(ctx, u.keys, locker.Beside{
		Take: func(i int, ask script.Call) script.Call {
			return u.of.Keys.LockUpdate(ask, u.valueKey(i), u.token, notices[i], lasting)
		},
		Undo: func(i int, release script.Call) script.Call {
			return u.of.Keys.UnlockUpdate(release, u.valueKey(i), u.token, notices[i])
		},
	})
	u.of.OfKeys.ForgetLocal(u.keys) // also after an error, as Redis may have removed them
	switch {
	case u.value == nil:
	case err != nil:
		u.value.Forget() // they would be old by the time there is a lock
	default:
		u.generation, u.locked = protocol.GenerationOf(u.token, held[0].Lease.Fence()), time.Now()
		u.value.Asked(ctx)
	}
	return held, err
}

// runHeld calls write, and ends the update, even if write fails or panics.
func (u *Update) runHeld(ctx context.Context, held []*locker.Queued) (err error) {
	for _, h := range held {
		var leave func()
		ctx, leave = h.Lease.Within(ctx) //nolint:fatcontext // as deep as there are keys: each lock is in the context
		defer leave()
	}
	defer func() {
		u.failed(err)
		failed, unlocked := u.endTogether(ctx, held)
		if u.began {
			err = errs.Join(append([]error{err}, u.of.OfKeys.EnqueueFailed(u.keys, failed)...)...)
		}
		err = errs.Join(err, unlocked)
	}()
	return u.announced(ctx)
}

// endTogether ends the update and gives up the locks, even if ctx has ended. A lock that was given up without that, as the Guard is being closed,
// leaves the end to a request of its own.
func (u *Update) endTogether(ctx context.Context, held []*locker.Queued) (failed map[string]error, unlocked error) {
	notices, notYet := u.notices(), []string(nil)
	give := func(i int, release script.Call) script.Call {
		return u.of.Keys.UnlockUpdate(release, u.valueKey(i), u.token, notices[i])
	}
	read := func(_ int, reply *script.Reply) (int, error) { return reply.Int() }
	if u.value != nil {
		if f := u.value.Filling(ctx, u.generation); f.TTL > 0 {
			give = func(i int, release script.Call) script.Call {
				return u.of.Keys.UnlockPut(release, u.valueKey(i), u.token, notices[i], time.Since(u.locked), f)
			}
			read = func(_ int, reply *script.Reply) (int, error) {
				released, status, err := protocol.ParseUnlocked(reply)
				u.value.Report(ctx, status, err)
				return released, err
			}
		}
	}
	failed = make(map[string]error)
	for i, one := range u.of.Locks.UnlockTogether(held, give, read) {
		unlocked = errs.Join(unlocked, one.Lock)
		switch key := u.keys[i]; {
		case !one.Sent:
			notYet = append(notYet, key)
		case one.Failed != nil:
			u.of.OfKeys.Breakers.Failed(one.Failed)
			failed[key] = u.of.OfKeys.Failed("invalidate", key, one.Failed)
		}
	}
	u.of.OfKeys.ForgetLocal(u.keys)
	if len(notYet) > 0 {
		maps.Copy(failed, u.sendEnd(ctx, notYet))
	}
	return failed, unlocked
}

// valueKey is where the value is that the update of the key is about.
func (u *Update) valueKey(i int) string {
	if u.value != nil {
		return u.value.Key()
	}
	return u.of.Keys.ValueKey(u.keys[i])
}

// notices are the next messages that local tiers are to forget the keys.
func (u *Update) notices() []string {
	all := make([]string, len(u.keys))
	for i, key := range u.keys {
		all[i] = u.of.OfKeys.Notice(key)
	}
	return all
}

package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Locker hands out locks that a store keeps. It is safe for concurrent use.
type Locker struct {
	life  *lifecycle.Lender[*Lease]
	store store.Store
	cfg   Config
}

func init() { store.Register(newOn) }

// newOn is store.New for the packages below this one. The client is only looked at to see that it is not nil. open is called with the
// completed Config, and with the life whose tasks Close joins.
func newOn(client any, cfg Config, open func(Config, *lifecycle.Life) store.Store) (*Locker, error) {
	if err := errors.Join(checkClient(client), cfg.check()); err != nil {
		return nil, fmt.Errorf("consensus: %w", err)
	}
	k := &Locker{life: lifecycle.NewLender((*Lease).abort), cfg: cfg.withDefaults()}
	k.store = open(k.cfg, k.life.Life)
	return k, nil
}

func checkClient(client any) error {
	if config.CheckClient(client) != nil {
		return errors.New("client is nil")
	}
	return nil
}

// Close ends the contexts of all leases with ErrClosed, unlocks them, and returns when everything the Locker started has
// ended; when the store hangs, that takes Config.Timeout, or as long as the client takes to give a request up. Calls that wait
// return ErrClosed. Close may be called more than once, and always returns nil.
func (k *Locker) Close() error {
	if k == nil {
		return nil // New failed: there is nothing to close
	}
	k.life.Close(ErrClosed)
	k.store.Close()
	return nil
}

// Lock waits until it has the lock of the name, or ctx ends: ctx bounds the wait, and has nothing to do with how long the
// lock may be held. If ctx ends, the error matches its error and its cause, and ErrNotAcquired only if the store has said during the wait that
// somebody else has the lock, or waits before it. Another one is what the store or the client said. The caller unlocks the lease.
func (k *Locker) Lock(ctx context.Context, name string) (*Lease, error) {
	return k.acquire(ctx, name, true)
}

// TryLock takes the lock if it is free, and returns ErrNotAcquired if it is not.
func (k *Locker) TryLock(ctx context.Context, name string) (*Lease, error) {
	return k.acquire(ctx, name, false)
}

// Do runs f while it holds the lock of the name. It waits for the lock as Lock does. The context given to f ends when ctx
// does, and when the lease is lost. Do returns f's error, and joined with it what Unlock says: when f returned nil and Do
// does not, the work may have been done beside somebody else's.
func (k *Locker) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	if f == nil {
		return lockErrors.NothingToDo(name)
	}
	l, err := k.Lock(ctx, name)
	if err != nil {
		return err
	}
	return l.do(ctx, f)
}

// DoFenced is Do for a function that needs no more of the lease than its fence. Config.WriteLock of a Guard asks for it.
func (k *Locker) DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error {
	if f == nil {
		return k.Do(ctx, name, nil)
	}
	return k.Do(ctx, name, func(ctx context.Context, l *Lease) error { return f(ctx, l.Fence()) })
}

func (k *Locker) acquire(ctx context.Context, name string, wait bool) (l *Lease, err error) {
	if k == nil {
		return nil, errNilLocker
	}
	call := "TryLock"
	if wait {
		call = "Lock"
	}
	asked := config.Hooks(k.cfg.Hooks).Ask(ctx, call, name)
	defer func() { asked.End(err) }()
	if err := lockErrors.Name(name, longestName-len(k.cfg.Prefix)-1); err != nil {
		return nil, err
	}
	if !k.life.Begin() {
		return nil, ErrClosed
	}
	defer k.life.Done()
	if ctx.Err() != nil {
		return nil, lockErrors.Refused(ctx, name, nil)
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.life.Ending, cancel)()
	claim, err := k.store.Acquire(asking, k.cfg.Prefix+":"+name, wait)
	if err != nil {
		return nil, k.refusal(ctx, name, err)
	}
	return k.granted(ctx, name, claim)
}

// refusal is the error of a call that did not get the lock.
func (k *Locker) refusal(ctx context.Context, name string, err error) error {
	switch {
	case k.life.Ending.Err() != nil:
		err = ErrClosed
	case errors.Is(err, store.ErrTaken):
		err = ErrNotAcquired
	}
	return lockErrors.Refused(ctx, name, err)
}

// granted returns the lease of a claim, unless that was over before it could begin.
func (k *Locker) granted(ctx context.Context, name string, claim store.Claim) (*Lease, error) {
	l := &Lease{life: k.life, timeout: k.cfg.Timeout, claim: claim, name: name, kept: make(chan struct{})}
	l.unlocked = config.Hooks(k.cfg.Hooks).Held(name)
	options := hold.Options{Holder: (*held)(l), TTL: k.cfg.TTL}
	k.life.Add(l, func() { l.hold.Begin(ctx, options, claim.Sent(), k.cfg.TTL) })
	claim.Keep(holder{&l.hold})
	close(l.kept)
	if l.Context().Err() != nil { // lost has given it back
		return nil, lockErrors.TooLate(l.Context(), name)
	}
	return l, nil
}

// holder hears of the renewals of a claim.
type holder struct{ hold *hold.Hold }

// Kept pushes the end of the trust forward.
func (h holder) Kept(sent time.Time) { _ = h.hold.Answered(sent, 1) } // why it is lost already, the context says

// Lost ends it.
func (h holder) Lost() { h.hold.Lose(ErrLeaseLost) }

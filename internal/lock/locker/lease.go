package locker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

// Claim is what a lease is on: one caller's way to a lock, which it gives up in its own way.
type Claim interface {
	// Renewal is the call that extends the lease: it returns queue.Done when it did, by TTL, and else why the lease is
	// lost.
	Renewal() script.Call
	// Extend extends the lease, at once, as Renewal does.
	Extend(ctx context.Context) (reply int, sent time.Time, err error)
	// GiveUp gives the lock up, and returns queue.Done, or why there was nothing to give up. trusted: the lease was,
	// until now.
	GiveUp(trusted bool) (reply int, err error)
	// Abandon gives up in the background what may have been granted, when there is no lease, or not any more.
	Abandon()
	// Lost is called when the lease is lost, or does not begin. Its holder may yet give it up.
	Lost()
}

// Lease is a lock that somebody asks for, and then holds. It is part of its Claim.
type Lease struct {
	Locker      *Locker
	Claim       Claim
	Name, Token string
	ByItself    bool // nobody renews it

	fence atomic.Int64
	hold  hold.Hold

	changes  sync.Mutex
	changing chan struct{} // size 1: taken by the call that changes the lease; nil: there was none yet; guarded by changes

	ending   sync.Mutex  // held by the call that unlocks; guards ended and err
	ended    bool        // it was unlocked
	err      error       // of Unlock
	unlocked func(error) // tells the hooks
}

// NilLease is what a nil lease of that package is.
func NilLease(pkg string) *Lease { return &Lease{Locker: Nil(pkg)} }

// Get asks for the lock of the name, and tells the hooks which call that was. Ask makes the Claim, which has nothing
// when there is an error.
func Get[A any](
	ctx context.Context, k *Locker, call, name string, how A, ask func(ctx context.Context, name string, how A) (*Lease, queue.Grant, error),
) (*Lease, error) {
	if k.Life == nil {
		return nil, k.NilLocker()
	}
	asking := k.Config.Hooks.Ask(ctx, call, name)
	l, err := get(ctx, k, name, how, ask)
	asking.End(err)
	return l, err
}

func get[A any](
	ctx context.Context, k *Locker, name string, how A, ask func(ctx context.Context, name string, how A) (*Lease, queue.Grant, error),
) (*Lease, error) {
	if err := k.Begin(name); err != nil {
		return nil, err
	}
	defer k.Life.Done()
	if ctx.Err() != nil {
		return nil, k.Refused(ctx, name, nil)
	}
	l, g, err := ask(ctx, name, how)
	if err != nil {
		return nil, k.Refused(ctx, name, err)
	}
	if k.Config.Replicas > 0 {
		l.SetFence(g.Fence)
		if err := k.Confirm(ctx, l.Claim.Renewal(), &g); err != nil {
			l.Claim.Lost()
			l.Claim.Abandon()
			return nil, k.Refused(ctx, name, err)
		}
	}
	l.begin(ctx, g)
	if l.Context().Err() != nil {
		l.Claim.Abandon()
		return nil, k.TooLate(l.Context(), name)
	}
	return l, nil
}

// begin begins a lease that was granted.
func (l *Lease) begin(ctx context.Context, g queue.Grant) {
	k := l.Locker
	o := hold.Options{Holder: (*held)(l), TTL: k.Trust, Max: k.Config.MaxHold, Replicas: k.Config.Replicas}
	if !k.Config.FixedLease && !l.ByItself {
		o.Keeper = k.Keeper
	}
	l.SetFence(g.Fence)
	l.unlocked = k.Config.Hooks.Held(l.Name)
	k.Life.Add(l, func() { l.hold.Begin(l.fenced(ctx), o, g.Sent, g.Length) })
}

// held is a Lease as its Hold sees it.
type held Lease

func (h *held) Renewal() script.Call  { return h.Claim.Renewal() }
func (h *held) Cause(reply int) error { return lost(reply) }

func (h *held) Lost() { // a holder that has lost it need not unlock
	h.Claim.Lost()
	h.Locker.Life.Remove((*Lease)(h))
}

// Context is the context to work with under the lock. It ends when the lease is lost, with the cause, and when it is
// unlocked.
func (l *Lease) Context() context.Context {
	if l.Locker.Life == nil {
		return hold.Never(l.Locker.NilLease())
	}
	return l.hold.Context()
}

// Within returns a context that ends with ctx and with the lease.
func (l *Lease) Within(ctx context.Context) (_ context.Context, end func()) {
	return l.hold.Within(l.fenced(ctx))
}

func (l *Lease) fenced(ctx context.Context) context.Context {
	if l.Locker.Fenced {
		return WithFence(ctx, l)
	}
	return ctx
}

// Fence is the fence of the lock, or what else tells its holders apart from those before.
func (l *Lease) Fence() int64 { return l.fence.Load() }

// SetFence gives the lease another fence.
func (l *Lease) SetFence(fence int64) { l.fence.Store(fence) }

// TrustedUntil is when the context ends unless the lease is renewed.
func (l *Lease) TrustedUntil() time.Time { return l.hold.TrustedUntil() }

// Lose ends the lease, with its cause.
func (l *Lease) Lose(cause error) { l.hold.Lose(cause) }

// Answered takes in the reply to a call that was to extend the lease, and returns why it is lost, if it is.
func (l *Lease) Answered(sent time.Time, reply int) error { return l.hold.Answered(sent, reply) }

// Extend makes the lease end TTL from now.
func (l *Lease) Extend(ctx context.Context) error {
	return l.Change(ctx, "extend", func() error {
		reply, sent, err := l.Claim.Extend(ctx)
		if err != nil {
			return err
		}
		return l.Answered(sent, reply)
	})
}

// Change has do change a lease that is held. It waits for a change under way. The error says what was tried.
func (l *Lease) Change(ctx context.Context, op string, do func() error) error {
	if l.Locker.Life == nil {
		return l.Locker.NilLease()
	}
	err := l.Locker.Begin(l.Name)
	if err == nil {
		defer l.Locker.Life.Done()
		err = l.change(ctx, do)
	}
	return l.Locker.Failed(op, l.Name, err)
}

func (l *Lease) change(ctx context.Context, do func() error) error {
	if cause := context.Cause(l.Context()); cause != nil {
		return cause
	}
	l.changes.Lock()
	if l.changing == nil {
		l.changing = make(chan struct{}, 1)
	}
	l.changes.Unlock()
	select {
	case l.changing <- struct{}{}:
		defer func() { <-l.changing }()
		return do()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Run waits for a lock with the package's own function, and runs f with its lease, as the package calls it.
func Run[K, L any](
	ctx context.Context, k K, lock func(K, context.Context, string) (L, error), core *Locker, held func(L) *Lease, name string,
	f func(context.Context, L) error,
) error {
	if f == nil {
		return core.NothingToDo(name)
	}
	l, err := lock(k, ctx, name)
	if err != nil {
		return err
	}
	return Do(ctx, held(l), l, f)
}

// Do runs f with the lease, as the package calls it, and unlocks it.
func Do[L any](ctx context.Context, l *Lease, as L, f func(context.Context, L) error) (err error) {
	defer func() { err = errors.Join(err, l.Unlock()) }()
	ctx, end := l.Within(ctx)
	defer end()
	return f(ctx, as)
}

// Unlock gives the lock up, once.
func (l *Lease) Unlock() error {
	if l.Locker.Life == nil {
		return l.Locker.NilLease()
	}
	l.ending.Lock()
	defer l.ending.Unlock()
	if !l.ended {
		l.endLocked(l.release())
	}
	return l.err
}

func (l *Lease) endLocked(err error) {
	l.ended, l.err = true, l.Locker.Failed("unlock", l.Name, err)
	l.unlocked(l.err)
}

// release gives the lock up. If Close has not waited for it, it does not ask Redis: such a lease was lost before.
func (l *Lease) release() error {
	life := l.Locker.Life
	if !life.Enter() {
		return context.Cause(l.Context())
	}
	defer life.Leave()
	before := l.hold.End()
	reply, err := l.Claim.GiveUp(before == nil)
	life.Remove(l)
	return given(before, reply, err)
}

// given is the error of an unlock with that answer. Its holder hears why the lease was lost before, whatever else went
// wrong.
func given(before error, reply int, err error) error {
	if err == nil && reply != queue.Done {
		err = lost(reply)
	}
	switch {
	case before == nil || errors.Is(err, before):
		return err
	case err == nil:
		return before
	}
	return fmt.Errorf("%w: %w", before, err)
}

// abort is what Close does to it.
func (l *Lease) abort(cause error) {
	l.Lose(cause)
	_ = l.Unlock() // if this fails, the lease expires
}

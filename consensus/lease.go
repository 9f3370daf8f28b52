package consensus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Lease is a lock that is held. It is safe for concurrent use.
type Lease struct {
	life    *lifecycle.Lender[*Lease]
	timeout time.Duration
	claim   store.Claim
	name    string
	hold    hold.Hold

	kept    chan struct{} // closed when the claim is kept: it is not released before
	freeing sync.Once
	freed   error // what the store said when it was asked to free the lock; written once

	once     sync.Once
	err      error       // of Unlock; written once
	unlocked func(error) // tells the hooks
}

// held is a Lease as its Hold sees it. The claim renews it, not a keeper.
type held Lease

func (*held) Renewal() script.Call { return script.Call{} }
func (*held) Cause(int) error      { return ErrLeaseLost }
func (h *held) Lost()              { (*Lease)(h).lost() }

// Context is the context to work with under the lock. It ends when the lease is lost, and then its cause is ErrLeaseLost or
// ErrClosed; and when it is unlocked. It has the values of the context that the lock was asked for with, and does not end
// with it. It ends no later than the lock can be somebody else's, whether the store can be reached or not; but a process may be
// paused between looking at it and writing: Fence is for that.
func (l *Lease) Context() context.Context {
	if l == nil {
		return hold.Never(errNilLease)
	}
	return l.hold.Context()
}

// Fence is a number that grows with every acquisition of the lock, also over restarts of the store. Give it to what the lock
// protects, which has to refuse requests with a smaller one than it has seen. Numbers are not consecutive, and those of
// different stores cannot be compared.
func (l *Lease) Fence() int64 {
	if l == nil {
		return 0
	}
	return l.claim.Fence()
}

// Token identifies the acquisition in the store.
func (l *Lease) Token() string {
	if l == nil {
		return ""
	}
	return l.claim.Token()
}

// TrustedUntil is when Context ends unless the lease is renewed, on this process's monotonic clock.
func (l *Lease) TrustedUntil() time.Time {
	if l == nil {
		return time.Time{}
	}
	return l.hold.TrustedUntil()
}

// Unlock gives the lock up. It ignores ctx's cancellation and uses its values, and takes Config.Timeout at most. It
// returns ErrLeaseLost or ErrClosed if the lease had ended before, so that somebody else may have worked meanwhile, and
// otherwise what the store or the client said if it could not be asked: then the lock is given up in the background, or
// ends by itself after TTL. Another Unlock does nothing, and returns the same.
func (l *Lease) Unlock(ctx context.Context) error {
	if l == nil {
		return errNilLease
	}
	return l.release(ctx)
}

// release unlocks, once.
func (l *Lease) release(ctx context.Context) error {
	l.once.Do(func() {
		lost := l.hold.End()
		err := l.free(ctx)
		if lost != nil {
			err = lost
		}
		l.err = lockErrors.Failed("unlock", l.name, err)
		l.unlocked(l.err)
	})
	return l.err
}

// free gives the lock up in the store, once. What Close has not waited for does not ask the store: Close has done so.
func (l *Lease) free(ctx context.Context) error {
	l.freeing.Do(func() {
		l.life.Remove(l)
		if !l.life.Enter() {
			l.freed = context.Cause(l.Context())
			return
		}
		defer l.life.Leave()
		l.freed = store.Bounded(context.WithoutCancel(ctx), l.timeout, l.claim.Release)
		if errors.Is(l.freed, store.ErrGone) {
			l.freed = ErrLeaseLost
		}
	})
	return l.freed
}

// lost frees in the background what is not trusted any more: its holder may not bother to unlock it.
func (l *Lease) lost() {
	if !l.life.Enter() {
		return
	}
	go func() { // owner: the Locker's life; stop: Timeout; joined by Close
		defer l.life.Leave()
		<-l.kept
		_ = l.free(context.Background()) // Unlock says why it was lost
	}()
}

// abort is what Close does to it.
func (l *Lease) abort(cause error) {
	l.hold.Lose(cause)
	_ = l.release(context.Background()) // if this fails, the lease expires
}

// do runs f with the lease, and unlocks it.
func (l *Lease) do(ctx context.Context, f func(context.Context, *Lease) error) (err error) {
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	ctx, cancel := l.hold.Within(ctx)
	defer cancel()
	return f(ctx, l)
}

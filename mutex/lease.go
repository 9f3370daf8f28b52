package mutex

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/link"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// lender is where a lease comes from.
type lender interface {
	extend(ctx context.Context, l *Lease) error
	unlock(l *Lease) (reply int, err error)
}

// Lease is a lock that is held. It is safe for concurrent use.
type Lease struct {
	from   lender
	life   *lifecycle.Lender[*Lease] // of the lender
	claim  *claim
	name   string
	trails []link.Trail // of a Quorum, one for each server
	queue  *localQueue  // where its turn ends when the lease does, or is lost
	fence  int64
	hold   hold.Hold
	since  time.Time    // when it was acquired, or a little later
	least  atomic.Int64 // how long the lock stays held from then on, at least; a time.Duration

	once     sync.Once
	err      error       // of Unlock; written once
	unlocked func(error) // tells the hooks
}

// held is a Lease as its Hold sees it.
type held Lease

func (h *held) Renewal() script.Call  { return h.claim.renewal(h.claim.base.Config.TTL, 0) }
func (h *held) Cause(reply int) error { return locker.Lost(reply) }

func (h *held) Lost() {
	h.queue.vacate()
	h.life.Remove((*Lease)(h))
}

// Context is the context to work with under the lock. It ends when the lease is unlocked, and when it is lost; the cause is
// then ErrLeaseLost, ErrRevoked or ErrClosed. It has the values of the context that the lock was requested with, but does
// not end with it. Between the end of the lease and the end of the work, somebody else may work too: Fence is for that.
func (l *Lease) Context() context.Context {
	if l == nil {
		return hold.Never(errNilLease)
	}
	return l.hold.Context()
}

// Fence is a number that grows with every acquisition of the lock. Pass it to the resource that the lock protects, which
// must refuse requests with a smaller fence than it has seen. That stops a holder that was paused and does not know yet
// that its lease is over. The fence is the greater of the last fence + 1 and the server's time in microseconds. Redis
// remembers a fence for 10 minutes or more after the lease; fences do not go back unless the server's clock is set back
// by more than that, or a failover loses the last fence and the new primary's clock is behind.
func (l *Lease) Fence() int64 {
	if l == nil {
		return 0
	}
	return l.fence
}

// Token identifies the acquisition, or its owner if it has one (WithOwner). It is what Inspect shows.
func (l *Lease) Token() string {
	if l == nil {
		return ""
	}
	return l.claim.token
}

// TrustedUntil is when Context ends unless the lease is renewed. It is measured on this process's monotonic clock, from before the
// last successful request was sent, so it is no later than the end of the lease in Redis. After a pause, a process may see Context
// alive for another moment, until its timers have run; it can check TrustedUntil at once.
func (l *Lease) TrustedUntil() time.Time {
	if l == nil {
		return time.Time{}
	}
	return l.hold.TrustedUntil()
}

// Extend makes the lease end TTL from now, and no later than MaxHold allows. The error matches ErrLeaseLost or ErrRevoked
// if there is no lease left to extend; any other error says nothing about that.
func (l *Lease) Extend(ctx context.Context) error {
	if l == nil {
		return errNilLease
	}
	if !l.life.Begin() {
		return ErrClosed
	}
	defer l.life.Done()
	if cause := context.Cause(l.Context()); cause != nil {
		return l.wrap("extend", cause)
	}
	return l.wrap("extend", l.from.extend(ctx, l))
}

// Unlock releases the lock, or one of its owner's holds on it.
//
//   - nil: it was held to the end.
//   - ErrLeaseLost, ErrRevoked, ErrClosed: it was not, so others may have worked in the meantime.
//   - Another error: Redis did not answer. Unlock goes on in the background, until the lease has ended.
//
// It takes at most RedisTimeout. It ignores the context, because a cancelled caller must unlock all the same. A second
// Unlock does nothing, and returns the same.
func (l *Lease) Unlock(_ context.Context) error { return l.finish(nil) }

// finish unlocks, once. The cause, if any, is why the holder did not do so itself.
func (l *Lease) finish(cause error) error {
	if l == nil {
		return errNilLease
	}
	l.once.Do(func() {
		err := l.release()
		l.err = errors.Join(l.wrap("unlock", cause), l.wrap("unlock", err))
		l.unlocked(l.err)
	})
	return l.err
}

// release gives the lock up. If Close has not waited for it, it does not ask Redis: such a lease was lost
// before.
func (l *Lease) release() error {
	if !l.life.Enter() {
		return context.Cause(l.Context())
	}
	defer l.life.Leave()
	reply, err := l.from.unlock(l)
	l.life.Remove(l)
	if err == nil && reply != queue.Done {
		err = locker.Lost(reply)
	}
	return err
}

// abort is what Close does to it.
func (l *Lease) abort(cause error) {
	l.hold.Lose(cause)
	_ = l.finish(cause) // if this fails, the lease expires
}

// do runs f with the lease, and unlocks it.
func (l *Lease) do(ctx context.Context, f func(context.Context, *Lease) error) (err error) {
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	ctx, cancel := l.hold.Within(ctx)
	defer cancel()
	return f(ctx, l)
}

func (l *Lease) wrap(op string, err error) error { return lockErrors.Failed(op, l.name, err) }

package rwlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

// Lease is a lock that is held, for writing or reading. It is safe for concurrent use.
type Lease struct {
	claim    *claim
	hold     hold.Hold
	changing chan struct{} // size 1: taken by the call that changes how the lock is held

	mu     sync.Mutex
	writes bool
	fence  int64

	ending   sync.Mutex  // held by the call that unlocks; guards ended and err
	ended    bool        // it was unlocked
	err      error       // of Unlock
	unlocked func(error) // tells the hooks
}

func (c *claim) newLease(ctx context.Context, g queue.Grant) *Lease {
	l := &Lease{claim: c, changing: make(chan struct{}, 1), writes: c.mode == writing, fence: g.Fence}
	l.unlocked = c.Config.Hooks.Held(c.name)
	c.life.Add(l, func() { l.hold.Begin(locker.WithFence(ctx, l), c.Holding((*held)(l)), g.Sent, g.Length) })
	return l
}

// held is a Lease as its Hold sees it.
type held Lease

func (h *held) Renewal() script.Call {
	l := (*Lease)(h)
	return l.claim.Renewal(l.Fence())
}

func (h *held) Cause(reply int) error { return locker.Lost(reply) }
func (h *held) Lost()                 { h.claim.life.Remove((*Lease)(h)) } // a holder that has lost it need not unlock

// Context is the context to work with under the lock. It ends when the lease is unlocked, and when it is lost; the cause is
// then ErrLeaseLost, ErrRevoked or ErrClosed. It has the values of the context that the lock was requested with, but does
// not end with it. Between the end of the lease and the end of the work, somebody else may work too: Fence is for that.
func (l *Lease) Context() context.Context {
	if l == nil {
		return hold.Never(errNilLease)
	}
	return l.hold.Context()
}

// Writes reports whether the lock is held for writing.
func (l *Lease) Writes() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

// Fence is a number that grows with every writer. Pass it to the resource that the lock protects, which must refuse writes
// with a smaller fence than it has seen. That stops a writer that was paused and does not know yet that its lease is over.
// A reader has the fence of the last writer, or 0 if none is remembered. A writer's is the greater of the last fence + 1
// and the server's time in microseconds. Redis remembers a fence for 10 minutes or more after the lease; fences do not go
// back unless the server's clock is set back by more than that, or a failover loses the last fence and the new primary's
// clock is behind.
func (l *Lease) Fence() int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fence
}

// Token identifies the acquisition. It is what Inspect shows of a writer.
func (l *Lease) Token() string {
	if l == nil {
		return ""
	}
	return l.claim.Token
}

// TrustedUntil is when Context ends unless the lease is renewed. It is measured on this process's monotonic clock, from
// before the last successful request was sent, so it is no later than the end of the lease in Redis. After a pause, a
// process may see Context alive for another moment, until its timers have run; it can check TrustedUntil at once.
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
	c := l.claim
	done, err := l.begin(ctx)
	if err != nil {
		return l.wrap("extend", err)
	}
	defer done()
	reply, sent, err := c.Renew(ctx, c.Renewal(l.Fence()))
	if err == nil {
		err = l.hold.Answered(sent, reply)
	}
	return l.wrap("extend", err)
}

// Unlock releases the lock, however it is held.
//
//   - nil: it was held to the end.
//   - ErrLeaseLost, ErrRevoked, ErrClosed: it was not, so others may have worked in the meantime.
//   - Another error: Redis did not answer. Unlock goes on in the background, until the lease has ended.
//
// It takes at most RedisTimeout. It ignores the context, because a cancelled caller must unlock all the same. A second
// Unlock does nothing, and returns the same.
func (l *Lease) Unlock(_ context.Context) error { return l.finish(nil) }

// finish unlocks, once. The cause, if there is one, is why its holder did not do so.
func (l *Lease) finish(cause error) error {
	if l == nil {
		return errNilLease
	}
	l.ending.Lock()
	defer l.ending.Unlock()
	if !l.ended {
		l.endLocked(errors.Join(l.wrap("unlock", cause), l.wrap("unlock", l.release())))
	}
	return l.err
}

func (l *Lease) endLocked(err error) {
	l.ended, l.err = true, err
	l.unlocked(err)
}

// release gives the lock up. If Close has not waited for it, it does not ask Redis: such a lease was lost before.
func (l *Lease) release() error {
	c := l.claim
	if !c.life.Enter() {
		return context.Cause(l.Context())
	}
	defer c.life.Leave()
	reply, err := c.GiveUp(&l.hold, l.Fence())
	c.life.Remove(l)
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

// begin begins a call on the lease. The caller calls done if there is no error.
func (l *Lease) begin(ctx context.Context) (done func(), err error) {
	if err := l.claim.begin(l.claim.name); err != nil {
		return nil, err
	}
	if cause := context.Cause(l.Context()); cause != nil {
		l.claim.life.Done()
		return nil, cause
	}
	select {
	case l.changing <- struct{}{}:
	case <-ctx.Done():
		l.claim.life.Done()
		return nil, context.Cause(ctx)
	}
	return func() {
		<-l.changing
		l.claim.life.Done()
	}, nil
}

func (l *Lease) wrap(op string, err error) error { return lockErrors.Failed(op, l.claim.name, err) }

package semaphore

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

// Lease is a permit that is held. It is safe for concurrent use.
type Lease struct {
	claim *claim
	fence int64  // of the last revocation before it
	alone func() // gives back a permit that Redis does not know of; nil: it does
	hold  hold.Hold

	once     sync.Once
	err      error       // of Unlock; written once
	unlocked func(error) // tells the hooks
}

func (c *claim) newLease(ctx context.Context, g queue.Grant) *Lease {
	l := &Lease{claim: c, fence: g.Fence, unlocked: c.Config.Hooks.Held(c.name)}
	c.life.Add(l, func() { l.hold.Begin(ctx, c.Holding((*held)(l)), g.Sent, g.Length) })
	return l
}

// held is a Lease as its Hold sees it.
type held Lease

func (h *held) Renewal() script.Call  { return h.claim.Renewal(h.fence) }
func (h *held) Cause(reply int) error { return locker.Lost(reply) }
func (h *held) Lost() { // a holder that has lost it need not unlock
	h.claim.life.Remove((*Lease)(h))
	if h.alone != nil {
		h.alone()
	}
}

// Context is the context to work with under the permit. It ends when the lease is unlocked, and when it is lost; the cause
// is then ErrLeaseLost, ErrRevoked or ErrClosed. It has the values of the context that the permit was requested with, but
// does not end with it.
func (l *Lease) Context() context.Context {
	if l == nil {
		return hold.Never(errNilLease)
	}
	return l.hold.Context()
}

// Token identifies the acquisition. It is what Inspect shows.
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
	if err := c.begin(c.name); err != nil {
		return l.wrap("extend", err)
	}
	defer c.life.Done()
	if cause := context.Cause(l.Context()); cause != nil {
		return l.wrap("extend", cause)
	}
	reply, sent, err := queue.Done, time.Now(), error(nil)
	if l.alone == nil {
		reply, sent, err = c.Renew(ctx, c.Renewal(l.fence))
	}
	if err == nil {
		err = l.hold.Answered(sent, reply)
	}
	return l.wrap("extend", err)
}

// Unlock releases the permit. It ignores ctx, and takes at most RedisTimeout. It returns ErrLeaseLost, ErrRevoked or ErrClosed if the
// permit was not held any more: somebody else may have worked in its place. Any other error comes from Redis or the client; Unlock
// then goes on in the background, until the permit is released or its lease has ended. A second Unlock does nothing, and returns the
// same.
func (l *Lease) Unlock(_ context.Context) error { return l.finish(nil) }

// finish unlocks, once. The cause, if there is one, is why its holder did not do so.
func (l *Lease) finish(cause error) error {
	if l == nil {
		return errNilLease
	}
	l.once.Do(func() {
		l.err = errors.Join(l.wrap("unlock", cause), l.wrap("unlock", l.release()))
		l.unlocked(l.err)
	})
	return l.err
}

// release gives the permit up. If Close has not waited for it, it does not ask Redis: such a lease was lost before.
func (l *Lease) release() error {
	c := l.claim
	if !c.life.Enter() {
		return context.Cause(l.Context())
	}
	defer c.life.Leave()
	reply, err := l.giveUp()
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

func (l *Lease) wrap(op string, err error) error { return lockErrors.Failed(op, l.claim.name, err) }

package semaphore

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
)

// Lease is a permit that is held. It is safe for concurrent use.
type Lease struct {
	held *locker.Lease
}

// leased is what a call that asked for a permit returns.
func leased(l *locker.Lease, err error) (*Lease, error) {
	if err != nil {
		return nil, err
	}
	return &Lease{l}, nil
}

func (l *Lease) core() *locker.Lease {
	if l == nil {
		return locker.NilLease(pkg)
	}
	return l.held
}

// Context is the context to work with under the permit. It ends when the lease is unlocked, and when it is lost; the cause
// is then ErrLeaseLost, ErrRevoked or ErrClosed. It has the values of the context that the permit was requested with, but
// does not end with it.
func (l *Lease) Context() context.Context { return l.core().Context() }

// Token identifies the acquisition. It is what Inspect shows.
func (l *Lease) Token() string { return l.core().Token }

// TrustedUntil is when Context ends unless the lease is renewed. It is measured on this process's monotonic clock, from
// before the last successful request was sent, so it is no later than the end of the lease in Redis. After a pause, a
// process may see Context alive for another moment, until its timers have run; it can check TrustedUntil at once.
func (l *Lease) TrustedUntil() time.Time { return l.core().TrustedUntil() }

// Extend makes the lease end TTL from now, and no later than MaxHold allows. The error matches ErrLeaseLost or ErrRevoked
// if there is no lease left to extend; any other error says nothing about that.
func (l *Lease) Extend(ctx context.Context) error { return l.core().Extend(ctx) }

// Unlock releases the permit. It ignores ctx, and takes at most RedisTimeout. It returns ErrLeaseLost, ErrRevoked or ErrClosed if the
// permit was not held any more: somebody else may have worked in its place. Any other error comes from Redis or the client; Unlock
// then goes on in the background, until the permit is released or its lease has ended. A second Unlock does nothing, and returns the
// same.
func (l *Lease) Unlock(_ context.Context) error { return l.core().Unlock() }

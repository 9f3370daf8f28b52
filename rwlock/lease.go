package rwlock

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/rw"
)

// Lease is a lock that is held, for writing or reading. It is safe for concurrent use.
type Lease struct {
	held *locker.Lease
}

// leased is what a call that asked for a lock returns.
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

// Context is the context to work with under the lock. It ends when the lease is unlocked, and when it is lost; the cause is
// then ErrLeaseLost, ErrRevoked or ErrClosed. It has the values of the context that the lock was requested with, but does
// not end with it. Between the end of the lease and the end of the work, somebody else may work too: Fence is for that.
func (l *Lease) Context() context.Context { return l.core().Context() }

// Writes reports whether the lock is held for writing.
func (l *Lease) Writes() bool { return l != nil && rw.ClaimOf(l.held).Writes() }

// Fence is a number that grows with every writer. Pass it to the resource that the lock protects, which must refuse writes
// with a smaller fence than it has seen. That stops a writer that was paused and does not know yet that its lease is over.
// A reader has the fence of the last writer, or 0 if none is remembered. A writer's is the greater of the last fence + 1
// and the server's time in microseconds. Redis remembers a fence for 10 minutes or more after the lease; fences do not go
// back unless the server's clock is set back by more than that, or a failover loses the last fence and the new primary's
// clock is behind.
func (l *Lease) Fence() int64 { return l.core().Fence() }

// Token identifies the acquisition. It is what Inspect shows of a writer.
func (l *Lease) Token() string { return l.core().Token }

// TrustedUntil is when Context ends unless the lease is renewed. It is measured on this process's monotonic clock, from
// before the last successful request was sent, so it is no later than the end of the lease in Redis. After a pause, a
// process may see Context alive for another moment, until its timers have run; it can check TrustedUntil at once.
func (l *Lease) TrustedUntil() time.Time { return l.core().TrustedUntil() }

// Extend makes the lease end TTL from now, and no later than MaxHold allows. The error matches ErrLeaseLost or ErrRevoked
// if there is no lease left to extend; any other error says nothing about that.
func (l *Lease) Extend(ctx context.Context) error { return l.core().Extend(ctx) }

// Unlock releases the lock, however it is held.
//
//   - nil: it was held to the end.
//   - ErrLeaseLost, ErrRevoked, ErrClosed: it was not, so others may have worked in the meantime.
//   - Another error: Redis did not answer. Unlock goes on in the background, until the lease has ended.
//
// It takes at most RedisTimeout. It ignores the context, because a cancelled caller must unlock all the same. A second
// Unlock does nothing, and returns the same.
func (l *Lease) Unlock(_ context.Context) error { return l.core().Unlock() }

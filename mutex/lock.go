package mutex

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
)

// Lock waits until it has the lock of the name, or ctx ends. The context bounds the wait, not how long the lock may be
// held. If ctx ends, the error matches its error and its cause, and ErrNotAcquired only if Redis has said during the wait that
// others have the lock. Any other error comes from Redis or the client: Lock returns it at once if Redis cannot be reached at all, or when it stays unreachable for longer
// than TTL during the wait. If the process stands still for TTL before it has the answer, the error matches ErrLeaseLost. The caller unlocks the lease.
func (k *Locker) Lock(ctx context.Context, name string) (*Lease, error) {
	return leased(locker.Get(ctx, k.core(), "Lock", name, k, lock))
}

// TryLock takes the lock if it is free, in one round trip, and returns ErrNotAcquired if it is not.
func (k *Locker) TryLock(ctx context.Context, name string) (*Lease, error) {
	return leased(locker.Get(ctx, k.core(), "TryLock", name, k, try))
}

// Do waits for the lock of the name as Lock does, and runs f while it holds it. The context given to f ends when ctx
// does, and when the lease is lost. Do returns f's error, joined with that of Unlock: if f returned nil and Do does not,
// somebody else may have worked at the same time.
func (k *Locker) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	return locker.Run(ctx, k, (*Locker).Lock, k.core(), (*Lease).core, name, f)
}

// DoFenced is Do for a function that needs only the fence of the lease. Config.WriteLock of a Guard uses it.
func (k *Locker) DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error {
	return locker.Run(ctx, k, (*Locker).Lock, k.core(), (*Lease).core, name, fenced(f))
}

// fenced calls f with the fence of a lease.
func fenced(f func(ctx context.Context, fence int64) error) func(context.Context, *Lease) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, l *Lease) error { return f(ctx, l.Fence()) }
}

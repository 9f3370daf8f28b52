package rwlock

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/mutex"
)

// Lock waits until it has the lock of the name for writing, or ctx ends. The context bounds the wait, not how long the
// lock may be held. If ctx ends, the error matches its error and its cause, and ErrNotAcquired only if Redis has said during
// the wait that others have the lock. Any other error comes from Redis or the client: Lock returns it at once if Redis cannot be reached at all, or when it stays unreachable for
// longer than TTL during the wait. If the process stands still for TTL before it has the answer, the error matches ErrLeaseLost. The caller
// unlocks the lease.
func (k *Locker) Lock(ctx context.Context, name string) (*Lease, error) {
	return leased(k.core().Lock(ctx, "Lock", name, rw.Writing))
}

// RLock is Lock for reading.
func (k *Locker) RLock(ctx context.Context, name string) (*Lease, error) {
	return leased(k.core().Lock(ctx, "RLock", name, rw.Reading))
}

// TryLock takes the lock for writing if nobody has it, in one round trip, and returns ErrNotAcquired if somebody does.
func (k *Locker) TryLock(ctx context.Context, name string) (*Lease, error) {
	return leased(k.core().TryLock(ctx, "TryLock", name, rw.Writing))
}

// TryRLock takes the lock for reading if no writer has it or waits for it, in one round trip, and returns ErrNotAcquired
// otherwise.
func (k *Locker) TryRLock(ctx context.Context, name string) (*Lease, error) {
	return leased(k.core().TryLock(ctx, "TryRLock", name, rw.Reading))
}

// Do waits for the lock of the name as Lock does, and runs f while it holds it for writing. The context given to f ends
// when ctx does, and when the lease is lost; FenceFrom finds the fence in it. Do returns f's error, joined with that of
// Unlock: if f returned nil and Do does not, somebody else may have worked at the same time.
func (k *Locker) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	return locker.Run(ctx, k, (*Locker).Lock, k.core().Locker, (*Lease).core, name, f)
}

// RDo is Do for reading.
func (k *Locker) RDo(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	return locker.Run(ctx, k, (*Locker).RLock, k.core().Locker, (*Lease).core, name, f)
}

type (
	// Redis is what a Locker needs of a client.
	Redis = mutex.Redis

	// Hooks are the hooks of package mutex.
	Hooks = mutex.Hooks
)

// FenceFrom returns the fence of the lease that ctx belongs to. That is a context that Do or RDo gave to its function, that of a Lease,
// that of the write of a Guard's Update (with any WriteLock), or one derived from these. If there are several, the innermost counts.
func FenceFrom(ctx context.Context) (number int64, ok bool) { return locker.FenceFrom(ctx) }

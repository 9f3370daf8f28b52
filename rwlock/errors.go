package rwlock

import "github.com/cacheguard/go/mutex"

// The errors of package mutex.
var (
	// ErrNotAcquired is returned when others have the lock: by TryLock and TryRLock at once, by TryUpgrade when others hold
	// or wait, and by Lock and RLock when their context ends after Redis has said so; then the error matches the context's error
	// and its cause too.
	ErrNotAcquired = mutex.ErrNotAcquired

	// ErrLeaseLost is the cause of a lease's context when the lease can no longer be trusted: it could not be
	// renewed in time, it is gone from Redis, or MaxHold is over. Unlock, and Do, return it then, and
	// whatever else failed; Extend, Downgrade, TryUpgrade and Unlock also when Redis says so.
	ErrLeaseLost = mutex.ErrLeaseLost

	// ErrRevoked is the cause of a lease's context when the lock was taken away with Revoke.
	ErrRevoked = mutex.ErrRevoked

	// ErrClosed is returned by calls on a Locker that is or gets closed, and the cause when the contexts of its
	// leases end.
	ErrClosed = mutex.ErrClosed

	// ErrNotReplicated is returned when Redis granted the lock, but fewer replicas than Config.Replicas acknowledged it in time.
	// The lock is being released. It is the same error in all packages of the library.
	ErrNotReplicated = mutex.ErrNotReplicated
)

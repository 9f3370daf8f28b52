package semaphore

import "github.com/cacheguard/go/mutex"

// The errors of package mutex.
var (
	// ErrNotAcquired is returned when all permits are taken, or others wait for them: by TryLock at once, and by Lock when its
	// context ends after Redis has said so; then the error matches the context's error and its cause too.
	ErrNotAcquired = mutex.ErrNotAcquired

	// ErrLeaseLost is the cause of a lease's context when the lease can no longer be trusted: it could not be
	// renewed in time, it is gone from Redis, or MaxHold is over. Unlock, and Do, return it then, and
	// whatever else failed; Extend and Unlock also when Redis says so.
	ErrLeaseLost = mutex.ErrLeaseLost

	// ErrRevoked is the cause of a lease's context when the permit was taken away with Revoke.
	ErrRevoked = mutex.ErrRevoked

	// ErrClosed is returned by calls on a Locker that is or gets closed, and the cause when the contexts of its
	// leases end.
	ErrClosed = mutex.ErrClosed
)

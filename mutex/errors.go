package mutex

import (
	"errors"

	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// The errors of all locks of the library: packages rwlock, semaphore and those below consensus have them by the same names.
var (
	// ErrNotAcquired is returned when somebody else has the lock: by TryLock at once, and by Lock when its context ends after it was told so;
	// then the error matches the context's error and its cause too. A server that says nothing, or a context that has ended before, does not
	// make an error match it.
	ErrNotAcquired = lifecycle.ErrNotAcquired

	// ErrLeaseLost is the cause of a lease's context when the lease can no longer be trusted: it could not be
	// renewed in time, somebody else has the lock, or MaxHold is over. Unlock, and Do, return it then, and
	// whatever else failed; Extend and Unlock also when Redis says so.
	ErrLeaseLost = lifecycle.ErrLeaseLost

	// ErrRevoked is the cause of a lease's context when the lock was taken away with Revoke.
	ErrRevoked = lifecycle.ErrRevoked

	// ErrClosed is returned by calls on a Locker that is or gets closed, and the cause when the contexts of its
	// leases end.
	ErrClosed = lifecycle.ErrLockClosed

	// ErrNotReplicated is returned when Redis granted the lock, but fewer replicas than Config.Replicas acknowledged it in time.
	// The lock is being released. It is the same error in all packages of the library.
	ErrNotReplicated = send.ErrNotReplicated
)

var errNoNames = errors.New("mutex: no names")

package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/run/errs"
)

// The errors of all locks, which package mutex describes.
var (
	ErrNotAcquired = errors.New("lock not acquired")
	ErrLeaseLost   = errors.New("lease lost")
	ErrRevoked     = errors.New("lease revoked")
	ErrLockClosed  = errors.New("locker is closed")

	ErrNilLocker = errors.New("locker is nil (did New return an error?)")
	ErrNilLease  = errors.New("lease is nil (did Lock return an error?)")
)

// LockErrors makes the errors of a package of locks.
type LockErrors struct{ Package string }

// LongestName is how many bytes the name of a lock on Redis may have.
const LongestName = 64 << 10

// Name refuses a name that no lock can have: an empty one, and one that is too long.
func (e LockErrors) Name(name string, most int) error {
	switch {
	case name == "":
		return fmt.Errorf("%s: name is empty", e.Package)
	case len(name) > most:
		return errs.TooLong(e.Package+": name", name, most)
	}
	return nil
}

// NilLocker is the error of a call on a nil Locker.
func (e LockErrors) NilLocker() error { return fmt.Errorf("%s: %w", e.Package, ErrNilLocker) }

// NilLease is the error of a call on a nil lease.
func (e LockErrors) NilLease() error { return fmt.Errorf("%s: %w", e.Package, ErrNilLease) }

// NothingToDo is the error of a call that was given no function to run under the lock.
func (e LockErrors) NothingToDo(name string) error {
	return fmt.Errorf("%s: do %q: f is nil", e.Package, errs.Short(name))
}

// Begin begins a call on the lock of the name, which is on Redis. Each nil is followed by one life.Done.
func (e LockErrors) Begin(life *Life, name string) error {
	if err := e.Name(name, LongestName); err != nil {
		return err
	}
	if !life.Begin() {
		return ErrLockClosed
	}
	return nil
}

// Refused is the error of a call that did not get the lock, because of err or because its context ended. It says that
// others have the lock only if err does: a server that is silent has not said so.
func (e LockErrors) Refused(ctx context.Context, name string, err error) error {
	ended := Ended(ctx) // nil: it has not
	switch {
	case errors.Is(err, ErrLockClosed):
		return err
	case errors.Is(err, ErrNotAcquired) && ended != nil:
		return fmt.Errorf("%s: %w: %q: %w", e.Package, ErrNotAcquired, errs.Short(name), ended)
	case errors.Is(err, ErrNotAcquired):
		return fmt.Errorf("%s: %w: %q", e.Package, ErrNotAcquired, errs.Short(name))
	case ended != nil && (err == nil || errors.Is(ended, err)):
		err = ended
	case ended != nil:
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return e.Failed("lock", name, err)
}

// Taken is the error of a wait that the context has ended, and that was told before that others have the lock.
func Taken(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrNotAcquired, context.Cause(ctx))
}

// TooLate is the error of a call that got its answer after the end of the lease.
func (e LockErrors) TooLate(lease context.Context, name string) error {
	return fmt.Errorf("%s: lock %q: the answer took longer than the lease: %w", e.Package, errs.Short(name), context.Cause(lease))
}

// Failed is the error of an operation on a lock; nil if err is.
func (e LockErrors) Failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %q: %w", e.Package, op, errs.Short(name), err)
}

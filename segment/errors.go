package segment

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

var (
	// ErrShort is returned by Take when fewer units were left than it asked for, and by TakeUpTo when none was.
	ErrShort = errors.New("segment: not enough left")

	// ErrNotFound is returned when nothing was created under a name, or it has expired.
	ErrNotFound = errors.New("segment: not found")

	// ErrExists is returned by Create when the name is in use.
	ErrExists = errors.New("segment: exists already")

	// ErrBusy is returned when others moved and took units all the time, so that Take could neither get its units
	// nor find out that there are too few, or Total could not count them. It is worth another try.
	ErrBusy = errors.New("segment: too busy")

	// ErrUncertain is returned by Create and Add when it is not known whether they were done: the context ended, Redis
	// gave no answer in time, or an error. It also matches that error. Adding again may add twice.
	ErrUncertain = errors.New("segment: outcome unknown")

	// ErrClosed is returned by calls on a Counter that is or gets closed.
	ErrClosed = errors.New("segment: counter is closed")
)

var (
	errNilCounter = errors.New("segment: counter is nil (did New return an error?)")
	errEmptyName  = errors.New("segment: name is empty")
	errStale      = errors.New("a later request of this lane was answered")
)

// failed is the error of an operation on a name.
func failed(op, name string, err error) error {
	return fmt.Errorf("segment: %s %q: %w", op, errs.Short(name), err)
}

// uncertain is the error of an operation that may or may not have been done.
func uncertain(err error) error { return fmt.Errorf("%w: %w", ErrUncertain, err) }

// orEnded is why the context ended, if there is an error and it has.
func orEnded(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return lifecycle.Ended(ctx)
	}
	return err
}

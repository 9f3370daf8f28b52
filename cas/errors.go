package cas

import (
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/run/errs"
)

var (
	// ErrNotFound is returned by Get when there is no value.
	ErrNotFound = errors.New("cas: not found")

	// ErrConflict is returned by Swap and Delete when the value has another version than they name, or is gone, and by
	// Update when that happened MaxAttempts times in a row. Nothing was changed.
	ErrConflict = errors.New("cas: conflict")

	// ErrUncertain is returned by Swap, Delete and Update when the write may have been done, may yet be done, or not: the
	// context ended, Redis gave no answer in time or an error, or it answered a repeated request after so many other
	// writes that it has forgotten the first. It also matches the error of Redis or the context. Get shows the current
	// value.
	ErrUncertain = errors.New("cas: outcome unknown")

	// ErrClosed is returned by calls on a Store that is or gets closed.
	ErrClosed = errors.New("cas: store is closed")
)

var (
	errNilStore  = errors.New("cas: store is nil (did New return an error?)")
	errEmptyKey  = errors.New("cas: key is empty")
	errForgotten = errors.New("redis has forgotten it among later writes")
)

// failed is the error of an operation on a key.
func failed(op, key string, err error) error {
	return fmt.Errorf("cas: %s %q: %w", op, errs.Short(key), err)
}

// uncertain is the error of a write whose outcome is not known.
func uncertain(op, key string, err error) error {
	return fmt.Errorf("cas: %s %q: %w: %w", op, errs.Short(key), ErrUncertain, err)
}

// Package store is what the locks of package consensus ask of the store that keeps them.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
)

var (
	// ErrTaken is returned by Acquire when somebody else has the lock and it must not wait.
	ErrTaken = errors.New("somebody else has the lock")

	// ErrGone is returned by Claim.Release when the lock was not held any more.
	ErrGone = errors.New("the store has given the lock up")
)

// Taken is the error of a wait that ended with err, and behind somebody who has the lock or waited before.
func Taken(err error) error { return fmt.Errorf("%w: %w", ErrTaken, err) }

// Store keeps locks.
type Store interface {
	// Acquire takes the lock of the name, and waits for it or not. It returns soon after ctx has ended, with an error that matches
	// ErrTaken only if the store, or the caller that has this process's turn, has said that somebody else has the lock. A failed Acquire
	// leaves nothing behind; what has to be given up in the store is given up by tasks of the Locker's life.
	Acquire(ctx context.Context, name string, wait bool) (Claim, error)

	// Close ends what the store runs for all locks together, after the last of them was released, and joins it.
	Close()
}

// Claim is a lock that a store has given. Its methods may be called concurrently.
type Claim interface {
	Fence() int64
	Token() string

	// Sent is when the request was sent that the store has granted or renewed the lock for. The lock belongs to nobody else
	// until Config.TTL after it.
	Sent() time.Time

	// Keep renews the claim until it is released or lost. It is called once, and returns at once.
	Keep(h Holder)

	// Release gives the lock up. It is called once, also for what was lost. It returns ErrGone when the lock was not
	// held any more.
	Release(ctx context.Context) error
}

// Holder is who holds the lock.
type Holder interface {
	Kept(sent time.Time) // the claim was renewed by a request that was sent then
	Lost()               // the claim is over
}

// Bounded makes a request that may take so long. If it is given up for that, its error says so.
func Bounded(ctx context.Context, timeout time.Duration, request func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := request(limited)
	if err == nil || limited.Err() == nil || ctx.Err() != nil {
		return err
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w (%w)", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("no answer within %v: %w", timeout, err)
}

// maker is the function that makes a *consensus.Locker. Package consensus sets it as it is initialized, so that it need not export a
// function which only the packages below it can call.
var maker any

// Register sets what New calls, for package consensus.
func Register[L, C any](locker func(client any, cfg C, open func(C, *lifecycle.Life) Store) (L, error)) {
	maker = locker
}

// New returns a *consensus.Locker, as L, with the Config, as C, on the store that open makes.
func New[L, C any](client any, cfg C, open func(C, *lifecycle.Life) Store) (L, error) {
	return maker.(func(any, C, func(C, *lifecycle.Life) Store) (L, error))(client, cfg, open)
}

package locktest

import (
	"context"
	"testing"
)

// Waiter is a call that waits for a lock.
type Waiter[L any] struct {
	Done chan struct{} // closed when the call has returned

	tb    testing.TB
	leave context.CancelCauseFunc
	lease L // when Done is closed, as err
	err   error
}

// Wait starts a call that asks for a lock, with a context that has ctx's values and ends with it, or when the call is to leave.
func Wait[L any](tb testing.TB, ctx context.Context, lock func(ctx context.Context, name string) (L, error), name string) *Waiter[L] {
	tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	w := &Waiter[L]{Done: make(chan struct{}), tb: tb}
	ctx, w.leave = context.WithCancelCause(ctx)
	tb.Cleanup(func() {
		cancel()
		w.leave(nil)
	})
	go func() { // owner: the test; ends with the wait; joined by receiving from Done, or by Close
		defer close(w.Done)
		w.lease, w.err = lock(ctx, name)
	}()
	return w
}

// Waits reports whether the call has not returned.
func (w *Waiter[L]) Waits() bool {
	select {
	case <-w.Done:
		return false
	default:
		return true
	}
}

// MustWait checks that the call has not returned.
func (w *Waiter[L]) MustWait() {
	w.tb.Helper()
	if !w.Waits() {
		w.tb.Fatalf("the lock was granted, or refused: %v", w.err)
	}
}

// Leave ends the call's context.
func (w *Waiter[L]) Leave(cause error) { w.leave(cause) }

// Err waits for the call's error.
func (w *Waiter[L]) Err() error {
	<-w.Done
	return w.err
}

// Got waits for the lease.
func (w *Waiter[L]) Got() L {
	w.tb.Helper()
	if err := w.Err(); err != nil {
		w.tb.Fatal(err)
	}
	return w.lease
}

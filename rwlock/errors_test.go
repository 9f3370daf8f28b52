package rwlock

import (
	"context"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/semaphore"
)

func TestTheErrorsOfAllLocksAreTheSame(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	held, err := f.lockers[0].Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.lockers[0].TryLock(t.Context(), "a")
	expect.ErrorIs(t, err, mutex.ErrNotAcquired, semaphore.ErrNotAcquired)
	expect.Equal(t, "its text", err.Error(), `rwlock: lock not acquired: "a"`)
	if err := f.lockers[0].Close(); err != nil {
		t.Fatal(err)
	}
	expect.ErrorIs(t, context.Cause(held.Context()), mutex.ErrClosed, semaphore.ErrClosed)
	for _, same := range [][]error{
		{ErrLeaseLost, mutex.ErrLeaseLost, semaphore.ErrLeaseLost}, {ErrRevoked, mutex.ErrRevoked, semaphore.ErrRevoked},
	} {
		expect.ErrorIs(t, same[0], same[1:]...)
	}
}

func TestANameThatIsTooLongIsRefusedAndTheErrorSaysTheLimit(t *testing.T) {
	t.Parallel()
	k := newFleet(t, standalone(t), 1, Config{}).lockers[0]
	_, err := k.TryRLock(t.Context(), strings.Repeat("x", 65_537))
	if err == nil || !strings.Contains(err.Error(), "65537 bytes, more than 65536") {
		t.Error(err)
	}
	l, err := k.TryRLock(t.Context(), strings.Repeat("x", 65_536))
	if err != nil {
		t.Fatal(err)
	}
	expect.ErrorIs(t, l.Unlock(t.Context()), nil)
}

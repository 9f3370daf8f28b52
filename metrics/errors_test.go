package metrics_test

import (
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

func TestTheErrorsOfAllLocksAreTheSame(t *testing.T) {
	t.Parallel()
	for _, same := range [][]error{
		{rwlock.ErrNotAcquired, mutex.ErrNotAcquired, semaphore.ErrNotAcquired}, {rwlock.ErrClosed, mutex.ErrClosed, semaphore.ErrClosed},
		{rwlock.ErrLeaseLost, mutex.ErrLeaseLost, semaphore.ErrLeaseLost}, {rwlock.ErrRevoked, mutex.ErrRevoked, semaphore.ErrRevoked},
	} {
		expect.ErrorIs(t, same[0], same[1:]...)
	}
}

package rwlock

import (
	"context"
	"errors"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestTheLeaseOfAReaderIsRenewedAndAFixedOneEnds(t *testing.T) {
	t.Parallel()
	kept := newFleet(t, standalone(t), 2, Config{TTL: brisk}).listening()
	fixed := newFleet(t, standalone(t), 2, Config{TTL: brisk, FixedLease: true}).listening()
	l := must(t, kept.lockers[0], (*Locker).RLock, "a")
	began := l.TrustedUntil()
	redistest.Await(t, "the lease was renewed more than once", func() bool {
		return l.TrustedUntil().After(began.Add(brisk / 2))
	})
	unlock(t, l)

	held := must(t, fixed.lockers[0], (*Locker).RLock, "a")
	pushed := wait(t, fixed.lockers[1], (*Locker).Lock, "a")
	<-held.Context().Done()
	expect.Equal(t, "lost", errors.Is(context.Cause(held.Context()), ErrLeaseLost), true)
	unlock(t, pushed.Got())
}

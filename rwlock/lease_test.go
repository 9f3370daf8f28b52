package rwlock

import (
	"context"
	"errors"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestWatchdogKeepsALeaseAndAFixedLeaseEnds(t *testing.T) {
	t.Parallel()
	kept := newFleet(t, standalone(t), 2, Config{TTL: brisk}).listening()
	fixed := newFleet(t, standalone(t), 2, Config{TTL: brisk, FixedLease: true}).listening()
	for _, how := range []take{(*Locker).Lock, (*Locker).RLock} {
		l := must(t, kept.lockers[0], how, "a")
		began := l.TrustedUntil()
		redistest.Await(t, "the lease was renewed more than once", func() bool {
			return l.TrustedUntil().After(began.Add(brisk / 2))
		})
		unlock(t, l)

		held := must(t, fixed.lockers[0], how, "a")
		pushed := wait(t, fixed.lockers[1], (*Locker).Lock, "a")
		<-held.Context().Done()
		expect.Equal(t, "lost", errors.Is(context.Cause(held.Context()), ErrLeaseLost), true)
		unlock(t, pushed.got())
	}
}

func TestMaxHoldEndsALeaseThatIsRenewed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{TTL: brisk, MaxHold: 3 * brisk / 2}).listening()
	l := must(t, f.lockers[0], (*Locker).RLock, "a")
	next := wait(t, f.lockers[1], (*Locker).Lock, "a")
	<-l.Context().Done()
	expect.Equal(t, "lost", errors.Is(context.Cause(l.Context()), ErrLeaseLost), true)
	unlock(t, next.got())
}

func TestLostLeasesAreNotKeptThoughNobodyUnlocksThem(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{TTL: brisk, Watchdog: -1})
	<-must(t, f.lockers[0], (*Locker).Lock, "a").Context().Done()
	redistest.Await(t, "it is forgotten", func() bool { return len(f.lockers[0].locks.Life.Held()) == 0 })
}

package rwlock

import (
	"context"
	"errors"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestDowngradeAdmitsTheReadersThatWaitAndKeepsTheLock(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 3, Config{}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "a")
	r := wait(t, f.lockers[1], (*Locker).RLock, "a")
	w := wait(t, f.lockers[2], (*Locker).Lock, "a")
	f.awaitWaiting("a", 1, 1)
	for range 2 {
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expect.Equal(t, "the reader's fence", r.Got().Fence(), l.Fence())
	if l.Writes() || !w.Waits() || l.Context().Err() != nil {
		t.Errorf("after a downgrade: writes %v, the next writer waits %v, %v", l.Writes(), w.Waits(), l.Context().Err())
	}
	unlock(t, l)
	unlock(t, r.Got())
	w.Got()
}

func TestOnlyTheOnlyReaderIsUpgradedAndNotPastAWriter(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	l, other := must(t, f.lockers[0], (*Locker).RLock, "a"), must(t, f.lockers[1], (*Locker).RLock, "a")
	for _, l := range []*Lease{l, other} {
		if err := l.TryUpgrade(t.Context()); !errors.Is(err, ErrNotAcquired) {
			t.Errorf("upgrade of one of two readers: %v", err)
		}
	}
	unlock(t, other)
	for range 2 {
		if err := l.TryUpgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !l.Writes() || l.Fence() == 0 || f.info("a").Token != l.Token() {
		t.Errorf("after an upgrade: writes %v, fence %d, %+v", l.Writes(), l.Fence(), f.info("a"))
	}
	if err := l.Downgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := wait(t, f.lockers[1], (*Locker).Lock, "a")
	f.awaitWaiting("a", 1, 0)
	if err := l.TryUpgrade(t.Context()); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("upgrade past a writer that waits: %v", err)
	}
	unlock(t, l)
	w.Got()
}

func TestRevokedHoldersLearnOfItAndTheNextGoesAhead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{TTL: 5 * brisk}).listening() // it is renewed in time on a busy machine
	for _, how := range []take{(*Locker).Lock, (*Locker).RLock} {
		l := must(t, f.lockers[0], how, "a")
		next := wait(t, f.lockers[1], (*Locker).Lock, "a")
		f.awaitWaiting("a", 1, 0)
		if n, err := f.lockers[1].Revoke(t.Context(), "a"); n != 1 || err != nil {
			t.Errorf("revoked %d, %v", n, err)
		}
		if got := next.Got(); got.Fence() <= l.Fence() {
			t.Errorf("fence %d after %d", got.Fence(), l.Fence())
		}
		<-l.Context().Done()
		if cause := context.Cause(l.Context()); !errors.Is(cause, ErrRevoked) {
			t.Errorf("the context ended with %v", cause)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrRevoked) {
			t.Errorf("Unlock: %v", err)
		}
		expect.Equal(t, "holder", f.info("a").Token, next.Got().Token())
		unlock(t, next.Got())
	}
}

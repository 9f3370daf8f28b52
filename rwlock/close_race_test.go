package rwlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// The holder, not Close, gives up a lost lease. It may do so when nobody waits for anything any more.
func TestUnlockOfALostLeaseBesideCloseIsJoinedOrSaysThatItIsTooLate(t *testing.T) {
	t.Parallel()
	for range 5 {
		f := newFleet(t, standalone(t), 1, Config{})
		var leases []*Lease
		for i := range 40 {
			leases = append(leases, must(t, f.lockers[0], (*Locker).Lock, fmt.Sprint("k", i)))
		}
		for _, l := range leases {
			l.held.Lose(ErrLeaseLost)
		}
		var all sync.WaitGroup
		for _, l := range leases {
			all.Go(func() { // owner: the test; ends with Unlock; joined below
				if err := l.Unlock(context.Background()); err != nil && !errors.Is(err, ErrLeaseLost) {
					t.Error(err)
				}
			})
		}
		all.Go(func() { _ = f.lockers[0].Close() }) // owner: the test; ends with Close; joined below
		all.Wait()
	}
}

func TestUnlockOfALostLeaseAfterCloseSaysWhyItWasLost(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	l := must(t, f.lockers[0], (*Locker).Lock, "k")
	l.held.Lose(ErrRevoked)
	_ = f.lockers[0].Close()
	if err := l.Unlock(t.Context()); !errors.Is(err, ErrRevoked) {
		t.Errorf("got %v", err)
	}
}

package mutex

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// locked is what Lockers and Quorums have in common here.
type locked interface {
	Lock(ctx context.Context, name string) (*Lease, error)
	Close() error
}

func eachLocked(t *testing.T, test func(t *testing.T, open func() locked)) {
	t.Helper()
	t.Run("Locker", func(t *testing.T) {
		t.Parallel()
		test(t, func() locked { return newFleet(t, 1, Config{}).lockers[0] })
	})
	t.Run("Quorum", func(t *testing.T) {
		t.Parallel()
		clients := []Redis{shared.Client(t)}
		test(t, func() locked {
			q, err := NewQuorum(clients, Config{Prefix: "test-" + rand.Text()})
			if err != nil {
				t.Fatal(err)
			}
			return q
		})
	})
}

// The holder, not Close, gives up a lost lease. It may do so when nobody waits for anything any more.
func TestUnlockOfALostLeaseBesideCloseIsJoinedOrSaysThatItIsTooLate(t *testing.T) {
	t.Parallel()
	eachLocked(t, func(t *testing.T, open func() locked) {
		for range 5 {
			k := open()
			var leases []*Lease
			for i := range 40 {
				leases = append(leases, must(t)(k.Lock(patient(t), fmt.Sprint("k", i))))
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
			all.Go(func() { _ = k.Close() }) // owner: the test; ends with Close; joined below
			all.Wait()
		}
	})
}

func TestUnlockOfALostLeaseAfterCloseSaysWhyItWasLost(t *testing.T) {
	t.Parallel()
	eachLocked(t, func(t *testing.T, open func() locked) {
		k := open()
		l := must(t)(k.Lock(patient(t), "k"))
		l.held.Lose(ErrRevoked)
		_ = k.Close()
		expect.ErrorIs(t, l.Unlock(t.Context()), ErrRevoked)
	})
}

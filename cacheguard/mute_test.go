package cacheguard

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// withMute is a fleet whose first instance may not publish, in scripts or by itself, with leases that nobody can wait for.
func withMute(t *testing.T) *fleet {
	s := redistest.Start(t)
	return newFleetOn(t, s.Client(t), Config{RedisTimeout: brisk, LeaseTTL: time.Hour},
		s.Client(t, s.As(t, "~*", "&*", "+@all", "-publish")), s.Client(t), s.Client(t)).listening()
}

func TestWhoeverWaitsForAnInstanceThatMayNotPublishDoesNotWaitForTheEndOfItsLease(t *testing.T) {
	t.Parallel()
	f := withMute(t)
	f.wakesAWaiter()
	f.wakesAReader()
}

func TestAnInvalidationByAnInstanceThatMayNotPublishLeavesNoWaiterWaiting(t *testing.T) {
	t.Parallel()
	f := withMute(t)
	db := newSource("old")
	leader := async(f.guards[1], "k", db.load)
	<-db.begun
	waiter := async(f.guards[2], "k", returns("new"))
	f.awaitRegistered("k", 1)
	mustInvalidate(t, f.guards[0], "k") // with the lease go the inboxes that were in it
	want(t, waiter, "new")
	close(db.release)
	want(t, leader, "old")
}

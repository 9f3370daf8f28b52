package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestWhoseSubscriptionIsDeadLearnsOfTheValueWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{LeaseTTL: brisk})
	f.listening()
	db := newSource("v")
	first := async(f.guards[1], "k", db.load)
	<-db.begun
	proxy.BlackHoleSubscribers(true)
	second := async(f.guards[0], "k", db.load)
	f.awaitRegistered("k", 1)
	close(db.release)
	want(t, first, "v")
	want(t, second, "v")
	expect.Equal(t, "loads", db.loads.Load(), 1)
	redistest.Await(t, "the dead subscription is noticed", func() bool { return f.guards[0].inbox.Address() == "" })

	// Now there is no subscription, so waiting calls poll.
	slow := newSource("w")
	leader := async(f.guards[1], "polled", slow.load)
	<-slow.begun
	waiting := async(f.guards[0], "polled", slow.load)
	awaitCallers[string](f, 0, "polled", 1)
	close(slow.release)
	want(t, leader, "w")
	want(t, waiting, "w")
	expect.Equal(t, "loads", slow.loads.Load(), 1)

	proxy.BlackHoleSubscribers(false)
	redistest.Await(t, "push is back", func() bool { return f.guards[0].inbox.Address() != "" })
}

// A flight asks again now and then. What is not stored must reach it, too, if the message comes while its question is on the way.
func TestWhatIsNotStoredReachesWhoAsksAgainAtThatMoment(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: brisk, HedgeAfter: -1, LeaseTTL: time.Minute})
	f.listening()
	mustGet(t, f.guards[0], "quick", returns("v")) // now it knows that loads are quick, and asks again soon
	db := newSource("v")
	unstored := func(ctx context.Context) (string, error) {
		SetTTL(ctx, 0)
		return db.load(ctx)
	}
	first := async(f.guards[1], "k", unstored)
	<-db.begun
	second := async(f.guards[0], "k", unstored)
	f.awaitRegistered("k", 1)
	again := proxy.On(steps["acquire"], redistest.Hold).Times(1)
	<-again.Hit()
	close(db.release)
	want(t, first, "v")
	redistest.AwaitNoLease(t, shared.Client(t), f.guards[0].cfg.Prefix)
	again.Release()
	want(t, second, "v")
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

// The flight asks again for those who came since it asked. If the key has been invalidated by then, nobody who came after that gets the old value.
func TestWhatIsNotStoredIsForNobodyWhoJoinsAfterAnInvalidation(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{LeaseTTL: time.Minute})
	f.listening()
	db := newSource("old")
	unstored := func(ctx context.Context) (string, error) {
		SetTTL(ctx, 0)
		return db.load(ctx)
	}
	first := async(f.guards[1], "k", unstored)
	<-db.begun
	waiting := []<-chan reply[string]{async(f.guards[0], "k", unstored)}
	f.awaitRegistered("k", 1)
	waiting = append(waiting, async(f.guards[0], "k", unstored))
	awaitCallers[string](f, 0, "k", 2)
	again := proxy.On(steps["acquire"], redistest.Hold).Times(1)
	db.release <- struct{}{}
	want(t, first, "old")
	<-again.Hit()
	db.value.Store("new")
	mustInvalidate(t, f.guards[1], "k")
	waiting = append(waiting, async(f.guards[0], "k", unstored))
	awaitCallers[string](f, 0, "k", 3)
	again.Release()
	close(db.release)
	for _, r := range waiting {
		want(t, r, "new")
	}
	expect.Equal(t, "loads", db.loads.Load(), 2)
}

func TestABrokenSubscriptionMakesWaitersAskAgain(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{LeaseTTL: time.Minute})
	f.listening()
	db := newSource("v")
	first := async(f.guards[1], "k", db.load)
	<-db.begun
	second := async(f.guards[0], "k", db.load)
	f.awaitRegistered("k", 1)
	proxy.Refuse(true) // the message falls into the gap
	close(db.release)
	want(t, first, "v")
	proxy.Refuse(false)
	want(t, second, "v") // though the lease would have lasted a minute
}

func TestWaitTimeoutEndsTheWaitForAnotherInstance(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{WaitTimeout: 50 * time.Millisecond, LeaseTTL: time.Minute})
	db := newSource("slow")
	first := async(f.guards[0], "k", db.load)
	<-db.begun
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns("own")), "own")
	close(db.release)
	want(t, first, "slow")
	f.stored()
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), "slow") // the own one was not stored
}

// A load that takes too long fails all who wait for it, also one that began to ask a moment before the load did: the database is slow already.
func TestWhoeverWaitsForALoadThatTakesTooLongSharesItsFailure(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{LoadTimeout: brisk, RedisTimeout: bearing, LeaseTTL: time.Minute})
	f.listening()
	warm(t, f)
	db := newSource("v")
	held := proxy.On(scriptOf("acquire"), redistest.Hold).Times(1)
	early := async(f.guards[0], "k", db.load)
	<-held.Hit()
	first := async(f.guards[1], "k", db.load)
	<-db.begun
	held.Release()
	got := <-early
	shared := errors.As(got.err, new(*LoadError))
	expect.Equal(t, "the failure is the other's", shared, true)
	expect.ErrorIs(t, (<-first).err, context.DeadlineExceeded)
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

// Two instances load for three times the lease, and their renewals fail. Each loses its lease to the other, and still one of the values is
// stored.
func TestLoadsSlowerThanALeaseThatCannotBeRenewedAreStored(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	proxy.On(scriptOf("renew"), redistest.ReplyError("ERR not today"))
	f := newFleetOn(t, shared.Client(t), Config{LeaseTTL: 100 * time.Millisecond}, proxy.Client(t), proxy.Client(t)) // it is to end
	warm(t, f)
	db := newSource("v")
	first := async(f.guards[0], "k", db.load)
	<-db.begun
	second := async(f.guards[1], "k", db.load)
	<-db.begun // it took the lease over
	expect.Equal(t, "takeovers", f.events.takeovers.Load(), 1)
	hold(t, 200*time.Millisecond) // its own lease has ended too
	close(db.release)
	want(t, first, "v")
	want(t, second, "v")
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), "v")
	redistest.Await(t, "the slower of the two is rejected", func() bool { return f.events.rejected.Load() == 1 })
}

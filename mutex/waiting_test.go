package mutex

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestFairLocksAreGrantedInTheOrderOfAsking(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, Config{Fair: true}).listening()
	l := f.lock(0, "k")
	var waiting []*waiter
	for i := range 12 {
		waiting = append(waiting, f.ask(t.Context(), i%3, "k"))
		f.awaitWaiters("k", i+1)
	}
	waiting[5].Leave(nil)
	<-waiting[5].Done
	f.awaitWaiters("k", 11)
	for i, a := range waiting {
		if i == 5 {
			continue
		}
		for j := i; j < len(waiting); j++ {
			if j != 5 {
				waiting[j].MustWait()
			}
		}
		f.unlock(l)
		l = a.Got()
	}
	f.unlock(l)
	f.awaitFree("k")
}

func TestWaitersOfOneProcessShareAPlaceAndHandTheLockOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleetOn(t, s.Client(t), Config{}, s.Client(t)).listening()
	f.unlock(f.lock(0, "k")) // Redis learns the scripts
	l := f.lock(0, "k")
	waiting := make([]*waiter, 20)
	for i := range waiting {
		waiting[i] = f.ask(t.Context(), 0, "k")
		f.awaitLine(0, "k", i+1)
	}
	f.awaitWaiters("k", 0)
	before := s.Reads()
	for _, a := range waiting {
		f.unlock(l)
		l = a.Got()
	}
	expect.Equal(t, "requests", s.Reads()-before, int64(len(waiting)))
	f.unlock(l)
	f.awaitFree("k")
}

func TestAProcessHandsTheLockOnOnlySoOftenWhileAnotherWaits(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{}).listening()
	l := f.lock(0, "k")
	other := f.ask(t.Context(), 1, "k")
	f.awaitWaiters("k", 1)
	waiting := make([]*waiter, 2*queue.MaxPasses)
	for i := range waiting {
		waiting[i] = f.ask(t.Context(), 0, "k")
		f.awaitLine(0, "k", i+1)
	}
	for _, a := range waiting[:queue.MaxPasses] {
		other.MustWait()
		f.unlock(l)
		l = a.Got()
	}
	f.unlock(l)
	f.unlock(other.Got())
	for _, a := range waiting[queue.MaxPasses:] {
		f.unlock(a.Got())
	}
	f.awaitFree("k")
}

func TestAWaiterThatLeavesALineIsPassedOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	l := f.lock(0, "k")
	first := f.ask(t.Context(), 0, "k")
	f.awaitLine(0, "k", 1)
	second := f.ask(t.Context(), 0, "k")
	f.awaitLine(0, "k", 2)
	first.Leave(nil)
	expect.ErrorIs(t, first.Err(), context.Canceled)
	f.unlock(l)
	f.unlock(second.Got())
}

func TestTheLockIsNotLostWithTheWaiterItIsHandedTo(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), Config{}, p.Client(t)).listening()
	l := f.lock(0, "k")
	first := f.ask(t.Context(), 0, "k")
	f.awaitLine(0, "k", 1)
	second := f.ask(t.Context(), 0, "k")
	f.awaitLine(0, "k", 2)
	held := p.On(unlockCommand, redistest.HoldReply).Times(2) // the quick one too
	done := make(chan error, 1)
	go func() { done <- l.Unlock(context.Background()) }() // owner: the test; joined by receiving
	<-held.Hit()
	first.Leave(nil)
	expect.ErrorIs(t, first.Err(), context.Canceled)
	held.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	f.unlock(second.Got())
	f.awaitFree("k")
}

func TestALostGrantIsFoundByTheHeartbeat(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), Config{TTL: 3 * time.Second}, shared.Client(t), p.Client(t)).listening()
	l := f.lock(0, "k")
	a := f.ask(t.Context(), 1, "k")
	f.awaitWaiters("k", 1)
	p.BlackHoleSubscribers(true)
	f.unlock(l)
	f.unlock(a.Got())
}

// A waiter that is granted the lock, and paused until the grant has ended, may queue again before it reads the message.
func TestTheMessageOfAnEarlierGrantIsNoGrant(t *testing.T) {
	t.Parallel()
	f, p := behind(t, Config{Fair: true})
	l := f.lock(1, "k")
	a := f.ask(t.Context(), 0, "k")
	f.awaitWaiters("k", 1)
	id := f.redis.ZRange(t.Context(), f.key("k")+":queue", 0, 0).Val()[0]
	asks := p.On(lockCommand, redistest.HoldReply).Times(1)
	late := wake.Frame(id, strconv.FormatInt(l.Fence(), 10))
	if err := f.redis.Publish(t.Context(), f.lockers[0].base.Inbox.Address(), late).Err(); err != nil {
		t.Fatal(err)
	}
	redistest.Await(t, "it asks", func() bool {
		a.MustWait()
		return asks.Count() > 0
	})
	asks.Remove()
	f.unlock(l)
	f.unlock(a.Got())
}

func TestADeadWaiterCostsNoMoreThanItsGrace(t *testing.T) {
	if redistest.IsChild(t) {
		holderProcess(t)
		return
	}
	t.Parallel()
	f := newFleet(t, 2, Config{Fair: true, TTL: 10 * time.Minute}).listening() // the lease of a dead holder is far too long
	l := f.lock(0, "k")
	child := f.child("lock k")
	f.awaitWaiters("k", 1)
	a := f.ask(t.Context(), 1, "k")
	f.awaitWaiters("k", 2)
	child.Kill()
	f.unlock(l)
	f.unlock(a.Got())
	expect.Equal(t, "grace", queue.Grace(10*time.Minute), 3*time.Second)
	f.awaitFree("k")
}

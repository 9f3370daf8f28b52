package mutex

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// atDoor is patient with Redis: a busy machine must not end a wait.
var atDoor = Config{Fair: true, RedisTimeout: redisTimeout}

// crowdOf asks n times in the first process, and returns the attempts in their order: some are queued in Redis, the others wait at the
// door.
func crowdOf(t *testing.T, f *fleet, n int) []*waiter {
	t.Helper()
	var crowd []*waiter
	for i := range n {
		crowd = append(crowd, f.ask(t.Context(), 0, "k"))
		if i < fairWidth {
			f.awaitWaiters("k", i+1)
		}
		f.awaitDoor(0, "k", max(i+1-fairWidth, 0))
	}
	return crowd
}

// handOver unlocks, and makes each of the attempts lock and unlock in this order, until the lock is free.
func (f *fleet) handOver(l *Lease, in []*waiter) {
	f.Helper()
	for _, a := range in {
		f.unlock(l)
		l = a.Got()
	}
	f.unlock(l)
	f.awaitFree("k")
}

// awaitDoor waits until that many wait at a locker's door.
func (f *fleet) awaitDoor(i int, name string, n int) {
	f.Helper()
	redistest.Await(f, "waiters at the door", func() bool { return f.lockers[i].doors.Waiting(name) == n })
}

func TestACallerAtTheDoorGoesBeforeOneOfAnotherProcessThatCameLater(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, atDoor).listening()
	l := f.lock(0, "k")
	crowd := crowdOf(t, f, 3*fairWidth)
	redistest.Later()
	later := f.ask(t.Context(), 1, "k")
	f.awaitWaiters("k", fairWidth+1)
	for i, a := range crowd {
		later.MustWait()
		for _, behind := range crowd[i:] {
			behind.MustWait()
		}
		f.unlock(l)
		l = a.Got()
		f.awaitWaiters("k", min(fairWidth, len(crowd)-i-1)+1)
	}
	f.unlock(l)
	f.unlock(later.Got())
	f.awaitFree("k")
}

func TestWhoLeavesTheDoorCostsNoRequest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleetOn(t, s.Client(t), atDoor, s.Client(t)).listening()
	l := f.lock(0, "k")
	crowd := crowdOf(t, f, 100)
	before := s.Commands()["zrem"]
	for _, a := range crowd[fairWidth : len(crowd)-1] {
		a.Leave(nil)
		expect.ErrorIs(t, a.Err(), context.Canceled)
	}
	expect.Equal(t, "at the door", f.lockers[0].doors.Waiting("k"), 1)
	expect.Equal(t, "queue changes", s.Commands()["zrem"]-before, 0)
	f.handOver(l, append(crowd[:fairWidth:fairWidth], crowd[len(crowd)-1]))
}

func TestWhenAllInsideLeaveThoseAtTheDoorComeNext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleetOn(t, s.Client(t), atDoor, s.Client(t), s.Client(t)).listening()
	l := f.lock(0, "k")
	crowd := crowdOf(t, f, 2*fairWidth)
	redistest.Later()
	later := f.ask(t.Context(), 1, "k")
	f.awaitWaiters("k", fairWidth+1)
	before := s.Commands()["zrem"]
	for _, a := range crowd[:fairWidth] {
		a.Leave(nil)
	}
	for _, a := range crowd[:fairWidth] {
		expect.ErrorIs(t, a.Err(), context.Canceled)
	}
	f.awaitDoor(0, "k", 0)
	redistest.Await(t, "those who have given up left the queue", func() bool { return s.Commands()["zrem"]-before >= fairWidth })
	f.awaitWaiters("k", fairWidth+1)
	f.handOver(l, append(crowd[fairWidth:], later))
}

func TestAThousandWaitersOfAFairLockGiveUpForNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, atDoor).listening()
	l := f.lock(0, "k")
	var crowd []*waiter
	for range 1000 {
		crowd = append(crowd, f.ask(t.Context(), 0, "k"))
	}
	f.awaitDoor(0, "k", len(crowd)-fairWidth)
	f.awaitWaiters("k", fairWidth)
	for _, a := range crowd {
		a.Leave(nil)
	}
	for _, a := range crowd {
		expect.ErrorIs(t, a.Err(), context.Canceled)
	}
	f.awaitWaiters("k", 0)
	f.unlock(l)
	f.unlock(f.lock(0, "k"))
	f.awaitFree("k")
}

func TestCloseEndsTheWaitOfThoseAtTheDoor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, atDoor).listening()
	l := f.lock(1, "k")
	crowd := crowdOf(t, f, 2*fairWidth)
	if err := f.lockers[0].Close(); err != nil {
		t.Error(err)
	}
	for _, a := range crowd {
		expect.ErrorIs(t, a.Err(), ErrClosed)
	}
	f.lockers = f.lockers[1:]
	f.awaitWaiters("k", 0)
	f.unlock(l)
	f.awaitFree("k")
}

// An owner may hold the lock that the others at the door wait for.
func TestAnOwnerLocksAgainPastTheDoor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, atDoor).listening()
	ctx := WithOwner(t.Context())
	l := must(t)(f.lockers[0].Lock(ctx, "k"))
	crowd := crowdOf(t, f, fairWidth+1)
	f.unlock(must(t)(f.lockers[0].Lock(ctx, "k")))
	for _, a := range crowd {
		a.MustWait()
		f.unlock(l)
		l = a.Got()
	}
	f.unlock(l)
	f.awaitFree("k")
}

func TestTheOrderIsKeptFarFromRedis(t *testing.T) {
	t.Parallel()
	far := redistest.StartFar(t, shared.Addr(), 50*time.Millisecond)
	f := newFleetOn(t, shared.Client(t), atDoor, far.Client(t), shared.Client(t)).listening()
	l := f.lock(0, "k")
	crowd := crowdOf(t, f, 2*fairWidth)
	redistest.Later()
	later := f.ask(t.Context(), 1, "k")
	f.awaitWaiters("k", fairWidth+1)
	f.handOver(l, append(crowd, later))
}

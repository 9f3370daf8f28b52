package queue

import (
	"testing"
	"testing/synctest"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestTheNextIsHandedTheLockInsteadOfWhoHasIt(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		callers := []*caller{e.come(0), e.come(farAway), e.come(0), e.come(0)}
		next, first := callers[0].guest.Next()
		if next != &callers[2].guest || !first {
			t.Fatal("the next is not the first that will hear of it")
		}
		if !callers[0].guest.Pass(next, Grant{Fence: 7}) {
			t.Fatal("it has not left")
		}
		e.entered(callers, 0, 2)
		if got := next.Handed(); got == nil || got.Fence != 7 {
			t.Errorf("it was handed %+v", got)
		}
		callers[2].leave()
		e.entered(callers, 0, 2, 3)
		if callers[3].guest.Handed() != nil {
			t.Error("it was handed what it has to ask for")
		}
		callers[3].leave()
		callers[1].leave() // when nobody else was there any more
	})
}

func TestWhoHasLeftIsHandedNothing(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		inside, gone := e.come(0), e.come(0)
		next, _ := inside.guest.Next()
		gone.stop()
		synctest.Wait()
		if !gone.guest.IsGone() || inside.guest.IsGone() {
			t.Error("the one that has left is another")
		}
		if inside.guest.Pass(next, Grant{}) {
			t.Error("it was handed the lock")
		}
		if next, _ := inside.guest.Next(); next != nil {
			t.Error("there is a next")
		}
		inside.leave()
	})
}

// Its context ends when it was handed the lock, and before it noticed. It has the lock.
func TestWhoIsHandedTheLockAsItLeavesHasIt(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		inside, next := e.come(0), e.come(0)
		e.mu.Lock()
		next.stop() // it waits for the mutex
		next.guest.grant = &Grant{Fence: 7}
		inside.guest.door.inside--
		inside.guest.door.letInLocked(&next.guest)
		e.mu.Unlock()
		synctest.Wait()
		if !next.isIn() {
			t.Error("nobody has the lock")
		}
		next.leave()
	})
}

func TestAProcessPassesALockOnOnlySoOftenBeforeOthers(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		last := e.come(0)
		for i := range MaxPasses + 1 {
			next := e.come(0)
			guest, first := last.guest.Next()
			expect.Equal(t, "first", first, i < MaxPasses)
			last.guest.Pass(guest, Grant{})
			synctest.Wait()
			last = next
		}
		next := e.come(0)
		last.leave() // the next asks Redis
		after := e.come(0)
		if _, first := next.guest.Next(); !first {
			t.Error("the count goes on")
		}
		next.leave()
		after.leave()
	})
}

func TestOneThatGoesInFirstIsAloneOrNotInside(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		var first, second Guest
		first.EnterFirst(e.Doors, "k")
		second.EnterFirst(e.Doors, "k")
		second.Leave() // it was not inside
		waits := e.come(0)
		e.entered([]*caller{waits})
		if next, _ := second.Next(); next != nil {
			t.Error("who is not inside has nobody to hand a lock to")
		}
		first.Leave()
		waits.leave()
	})
}

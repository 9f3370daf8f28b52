package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

const farAway = 10 * time.Millisecond // is Redis, in these tests

// entrance is a door in virtual time, which passes only while everybody waits.
type entrance struct {
	*testing.T
	*Doors
	ctx, ending context.Context
	end         context.CancelCauseFunc
}

// atDoor runs a test at a door of that many places.
func atDoor(t *testing.T, width int, test func(e *entrance)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &entrance{T: t, Doors: &Doors{Width: width, RoundTrip: func(string) time.Duration { return farAway }}, ctx: t.Context()}
		e.ending, e.end = context.WithCancelCause(context.Background())
		test(e)
		if len(e.byName) > 0 {
			t.Errorf("%d doors are left", len(e.byName))
		}
	})
}

// caller is one that enters.
type caller struct {
	*entrance
	guest Guest
	err   error
	done  atomic.Bool // it is inside, or has left: what stands above is written
	stop  context.CancelFunc
}

// come starts a caller that leaves after a time, or never if that is 0.
func (e *entrance) come(patience time.Duration) *caller {
	ctx, stop := context.WithCancel(e.ctx)
	if patience > 0 {
		ctx, stop = context.WithTimeout(e.ctx, patience)
	}
	c := &caller{entrance: e, stop: stop}
	e.Cleanup(stop)
	go func() { // owner: the test; ends with Enter; joined by the bubble
		c.err = c.guest.Enter(ctx, e.ending, e.Doors, "k")
		c.done.Store(true)
	}()
	synctest.Wait()
	return c
}

func (c *caller) isIn() bool { return c.done.Load() && c.err == nil }

// leave makes a caller leave that is inside.
func (c *caller) leave() {
	c.Helper()
	synctest.Wait()
	if !c.isIn() {
		c.Fatal("the caller that is to leave is not inside")
	}
	c.guest.Leave()
}

// entered checks which of the callers are inside.
func (e *entrance) entered(callers []*caller, want ...int) {
	e.Helper()
	synctest.Wait()
	var got []int
	for i, c := range callers {
		if c.isIn() {
			got = append(got, i)
		}
	}
	if !slices.Equal(got, want) {
		e.Errorf("%v are or were inside, want %v", got, want)
	}
}

func TestADoorLetsTheFirstInAndTheOthersInTheirOrder(t *testing.T) {
	atDoor(t, 2, func(e *entrance) {
		var callers []*caller
		for range 4 {
			callers = append(callers, e.come(0))
		}
		e.entered(callers, 0, 1)
		callers[1].leave()
		e.entered(callers, 0, 1, 2)
		callers[0].leave()
		e.entered(callers, 0, 1, 2, 3)
		callers[2].leave()
		callers[3].leave()
	})
}

func TestWhoLeavesADoorMakesRoomAndWhoWaitsMakesNone(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		var callers []*caller
		for range 4 {
			callers = append(callers, e.come(0))
		}
		callers[1].stop()
		e.entered(callers, 0)
		expect.ErrorIs(t, callers[1].err, context.Canceled)
		callers[0].leave()
		e.entered(callers, 0, 2)
		callers[2].leave()
		callers[3].leave()
	})
}

func TestTheDoorOfASharedLockIsOpenUntilSomebodyHasToQueueAndWhenSomebodyIsGranted(t *testing.T) {
	atDoor(t, 2, func(e *entrance) {
		e.Shared = true
		callers := []*caller{e.come(0), e.come(0), e.come(0)}
		e.entered(callers, 0, 1, 2)
		callers[0].guest.Answered(time.Now(), 1)
		for range 4 {
			callers = append(callers, e.come(0))
		}
		callers[0].leave()
		e.entered(callers, 0, 1, 2)
		callers[1].leave()
		e.entered(callers, 0, 1, 2, 3)
		callers[2].guest.Granted()
		e.entered(callers, 0, 1, 2, 3, 4, 5, 6)
		for _, c := range callers[2:] {
			c.leave()
		}
	})
}

// A caller that is let in and leaves at the same moment must not take the place with it.
func TestThePlaceOfWhoLeavesWhenItIsLetInGoesToTheNext(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		callers := []*caller{e.come(0), e.come(0), e.come(0)}
		e.mu.Lock()
		callers[1].stop() // it waits for the mutex, and is let in before it has it
		callers[0].guest.leaveLocked()
		e.mu.Unlock()
		synctest.Wait()
		if callers[1].isIn() { // either is right: it was told both
			callers[1].leave()
		}
		synctest.Wait()
		if !callers[2].isIn() {
			t.Error("the next is not let in")
		}
		callers[2].leave()
	})
}

func TestACallerWithoutTimeForAGrantStaysOutsideUnlessNobodyIsInside(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		short := margin(farAway)
		callers := []*caller{e.come(0), e.come(short), e.come(short + 1), e.come(0)}
		e.Width = 2
		callers = append(callers, e.come(0))
		e.entered(callers, 0, 2)
		callers[0].leave()
		e.entered(callers, 0, 2, 3)
		callers[2].leave()
		callers[3].leave()
		callers[4].leave()
		e.entered(callers, 0, 1, 2, 3, 4)
		callers[1].leave()
		if late := e.come(time.Nanosecond); !late.isIn() {
			t.Error("nobody asks whether the lock is free")
		} else {
			late.leave()
		}
	})
}

func TestAThousandThatAllGiveUpLeaveNothing(t *testing.T) {
	atDoor(t, 4, func(e *entrance) {
		var callers []*caller
		for range 1000 {
			callers = append(callers, e.come(time.Second))
		}
		e.entered(callers, 0, 1, 2, 3)
		time.Sleep(time.Second) // of the bubble
		e.entered(callers, 0, 1, 2, 3)
		for _, c := range callers[:4] {
			c.leave()
		}
	})
}

func TestAllWhoWaitAtADoorEndWithTheirLocker(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		inside, waits := e.come(0), e.come(0)
		e.end(errDown)
		synctest.Wait()
		expect.ErrorIs(t, waits.err, errDown)
		inside.leave()
	})
}

func TestEveryPlaceInACrowdIsGivenBack(t *testing.T) {
	t.Parallel()
	ds := &Doors{Width: 3, RoundTrip: func(string) time.Duration { return 0 }}
	var most, inside int
	var mu sync.Mutex
	count := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		inside += by
		most = max(most, inside)
	}
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() { // owner: the test; ends by itself; joined below
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%30)*100*time.Microsecond)
			defer cancel()
			if i%3 == 0 {
				ctx = t.Context()
			}
			var g Guest
			if g.Enter(ctx, t.Context(), ds, fmt.Sprint(i%2)) == nil {
				count(1)
				count(-1)
				g.Leave()
			}
		})
	}
	all.Wait()
	if len(ds.byName) > 0 || most > 2*ds.Width {
		t.Errorf("%d doors are left, %d were inside", len(ds.byName), most)
	}
}

func TestArrivalsAreInOrderHoweverTheClockIsLearnt(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		server := func() int64 { return time.Now().UnixMicro() + 5_000_000 }
		first, second := e.come(0), e.come(0)
		expect.Equal(t, "when the first came, by a clock that nobody knows", first.guest.Arrived(), 0)
		third := e.come(0)
		time.Sleep(time.Millisecond)
		sent := time.Now().Add(-time.Second) // a request that took long says little
		first.guest.Answered(sent, server())
		first.leave()
		synctest.Wait()
		second.guest.Answered(time.Now(), server()) // now it is known well
		second.leave()
		synctest.Wait()
		if a, b := second.guest.Arrived(), third.guest.Arrived(); a == 0 || b <= a {
			t.Errorf("the second came at %d, the third at %d", a, b)
		}
		fourth := e.come(0)
		time.Sleep(time.Second)
		came := server() - 1_000_000
		third.guest.Answered(time.Now(), server()-3_600_000_000) // the clock was set back
		third.leave()
		synctest.Wait()
		expect.Equal(t, "when the fourth came", fourth.guest.Arrived(), came-3_600_000_000)
		fourth.leave()
	})
}

// Else the callers of a process are served in a block: all that have come meanwhile seem to have come with the last heartbeat.
func TestAHeartbeatDoesNotSendThoseToTheEndWhoHaveComeBefore(t *testing.T) {
	atDoor(t, 1, func(e *entrance) {
		server := func() int64 { return time.Now().UnixMicro() + 5_000_000 }
		first := e.come(0)
		first.guest.Answered(time.Now(), server())
		time.Sleep(time.Millisecond)
		second, came := e.come(0), server()
		for range 3 { // heartbeats
			time.Sleep(time.Second)
			first.guest.Answered(time.Now(), server())
		}
		first.leave()
		synctest.Wait()
		expect.Equal(t, "when the second came", second.guest.Arrived(), came)
		second.leave()
	})
}

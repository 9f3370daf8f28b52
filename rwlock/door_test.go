package rwlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// crowdOf starts that many writers in the first process, and returns them in their order: some are queued in Redis, the others wait at the
// door.
func crowdOf(t *testing.T, f *fleet, n int) []*waiter {
	t.Helper()
	var crowd []*waiter
	for i := range n {
		crowd = append(crowd, wait(t, f.lockers[0], (*Locker).Lock, "k"))
		if i < rw.WritersWidth {
			f.awaitWaiting("k", i+1, 0)
		}
		f.awaitDoor("k", max(i+1-rw.WritersWidth, 0))
	}
	return crowd
}

// awaitDoor waits until that many writers wait at the first process's door.
func (f *fleet) awaitDoor(name string, n int) {
	f.t.Helper()
	redistest.Await(f.t, "writers at the door", func() bool { return f.lockers[0].locks.Writers.Waiting(name) == n })
}

func TestAWriterAtTheDoorGoesBeforeOneOfAnotherProcessThatCameLater(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: redisTimeout}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "k")
	crowd := crowdOf(t, f, 3*rw.WritersWidth)
	redistest.Later()
	later := wait(t, f.lockers[1], (*Locker).Lock, "k")
	f.awaitWaiting("k", rw.WritersWidth+1, 0)
	for i, w := range crowd {
		for _, behind := range append(crowd[i:], later) {
			if !behind.Waits() {
				t.Fatal("a writer does not wait for those before it")
			}
		}
		unlock(t, l)
		l = w.Got()
		f.awaitWaiting("k", min(rw.WritersWidth, len(crowd)-i-1)+1, 0)
	}
	unlock(t, l)
	unlock(t, later.Got())
}

// A writer that has waited at the door has an early place but a late ticket. A reader that queued in between is admitted before it, as
// every reader is when a writer leaves.
func TestReadersGoBetweenTheWritersOfADoor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: redisTimeout}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "k")
	crowd := crowdOf(t, f, 2*rw.WritersWidth)
	for i, w := range crowd {
		reader := wait(t, f.lockers[1], (*Locker).RLock, "k")
		f.awaitWaiting("k", min(rw.WritersWidth, len(crowd)-i), 1)
		unlock(t, l)
		reading := reader.Got()
		if !w.Waits() {
			t.Fatal("a writer holds beside a reader")
		}
		unlock(t, reading)
		l = w.Got()
	}
	unlock(t, l)
}

func TestWritersThatLeaveTheDoorCostNoRequest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 1, Config{RedisTimeout: redisTimeout}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "k")
	crowd := crowdOf(t, f, 100)
	before := s.Commands()
	for _, w := range crowd[rw.WritersWidth : len(crowd)-1] {
		w.Leave(nil)
		<-w.Done
	}
	after := s.Commands()
	expect.Equal(t, "releases", after["zrem"]-before["zrem"], 0)
	if n := after["zadd"] - before["zadd"]; n > 10*rw.WritersWidth { // those in the queue say now and then that they live
		t.Errorf("%d places", n)
	}
	for _, w := range append(crowd[:rw.WritersWidth:rw.WritersWidth], crowd[len(crowd)-1]) {
		unlock(t, l)
		l = w.Got()
	}
	unlock(t, l)
}

func TestWhenAllWritersInsideLeaveThoseAtTheDoorComeNext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 2, Config{RedisTimeout: redisTimeout}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "k")
	crowd := crowdOf(t, f, 2*rw.WritersWidth)
	redistest.Later()
	later := wait(t, f.lockers[1], (*Locker).Lock, "k")
	f.awaitWaiting("k", rw.WritersWidth+1, 0)
	before := s.Commands()["zrem"]
	for _, w := range crowd[:rw.WritersWidth] {
		w.Leave(nil)
	}
	f.awaitDoor("k", 0)
	for _, w := range crowd[:rw.WritersWidth] {
		<-w.Done
	}
	// Each is taken out of three sets.
	redistest.Await(t, "those who have given up left the queue", func() bool { return s.Commands()["zrem"]-before >= 3*rw.WritersWidth })
	f.awaitWaiting("k", rw.WritersWidth+1, 0)
	for _, w := range append(crowd[rw.WritersWidth:], later) {
		unlock(t, l)
		l = w.Got()
	}
	unlock(t, l)
}

func TestAThousandWritersGiveUpForNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: redisTimeout}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "k")
	var crowd []*waiter
	for range 1000 {
		crowd = append(crowd, wait(t, f.lockers[0], (*Locker).Lock, "k"))
	}
	f.awaitDoor("k", len(crowd)-rw.WritersWidth)
	f.awaitWaiting("k", rw.WritersWidth, 0)
	for _, w := range crowd {
		w.Leave(nil)
	}
	for _, w := range crowd {
		if <-w.Done; !errors.Is(w.Err(), context.Canceled) {
			t.Errorf("a caller that gave up got %v", w.Err())
		}
	}
	f.awaitWaiting("k", 0, 0)
	unlock(t, l)
	unlock(t, must(t, f.lockers[0], (*Locker).Lock, "k"))
}

// Readers that would leave soon cost two requests each when they queue.
func TestAThousandReadersThatLeaveSoonCostRedisLittle(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 1, Config{RedisTimeout: redisTimeout}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "k")
	first := wait(t, f.lockers[0], (*Locker).RLock, "k") // it is patient
	f.awaitWaiting("k", 0, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
	defer cancel()
	ask := func() error {
		_, err := f.lockers[0].RLock(ctx, "k")
		return err
	}
	var crowd sync.WaitGroup
	crowd.Go(func() { _ = ask() }) // owner: the test; stop: ctx; joined below; it tells the others that they have to queue
	redistest.Await(t, "the door is shut, or it is too late", func() bool {
		return f.info("k").WaitingReaders == 2 || ctx.Err() != nil
	})
	before := s.Commands()["zadd"]
	for range 1000 {
		crowd.Go(func() { // as above
			if err := ask(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a caller that left got %v", err)
			}
		})
	}
	crowd.Wait()
	if n := s.Commands()["zadd"] - before; n > 16*rw.ReadersWidth { // a place takes two, and a heartbeat one
		t.Errorf("%d changes of the queue", n)
	}
	f.awaitWaiting("k", 0, 1)
	unlock(t, l)
	unlock(t, first.Got())
	expect.Equal(t, "at the door", f.lockers[0].locks.Readers.Waiting("k"), 0)
}

func TestCloseEndsTheWaitOfWritersAtTheDoor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: redisTimeout}).listening()
	l := must(t, f.lockers[1], (*Locker).Lock, "k")
	crowd := crowdOf(t, f, 2*rw.WritersWidth)
	if err := f.lockers[0].Close(); err != nil {
		t.Error(err)
	}
	for _, w := range crowd {
		if <-w.Done; !errors.Is(w.Err(), ErrClosed) {
			t.Errorf("the waiter got %v", w.Err())
		}
	}
	f.lockers = f.lockers[1:]
	f.awaitWaiting("k", 0, 0)
	unlock(t, l)
}

func TestTheOrderOfWritersIsKeptFarFromRedis(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 0, Config{})
	f.join(redistest.StartFar(t, shared.Addr(), 50*time.Millisecond).Client(t), Config{})
	f.join(shared.Client(t), Config{})
	f.listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "k")
	crowd := crowdOf(t, f, 2*rw.WritersWidth)
	redistest.Later()
	later := wait(t, f.lockers[1], (*Locker).Lock, "k")
	f.awaitWaiting("k", rw.WritersWidth+1, 0)
	for _, w := range append(crowd, later) {
		unlock(t, l)
		l = w.Got()
	}
	unlock(t, l)
}

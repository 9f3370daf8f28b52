package semaphore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAsManyHoldAsThereArePermitsAndNoMore(t *testing.T) {
	everywhere(t, func(t *testing.T, connect func(testing.TB) client) {
		f := newFleet(t, connect, 3, Config{Permits: 3})
		var held []*Lease
		for i := range 3 {
			held = append(held, take(t, f.lockers[i]))
		}
		for _, k := range f.lockers {
			if _, err := k.TryLock(t.Context(), "a"); !errors.Is(err, ErrNotAcquired) {
				t.Errorf("TryLock of a fourth: %v", err)
			}
		}
		other, err := f.lockers[0].TryLock(t.Context(), "b")
		if err != nil {
			t.Errorf("another name: %v", err)
		}
		expect.Equal(t, "holders", len(f.info().Holders), 3)
		unlock(t, held[1])
		l, err := f.lockers[0].TryLock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, other, l, held[0], held[2])
		expect.Equal(t, "holders in the end", len(f.info().Holders), 0)
	})
}

func TestPermitsGoToTheFirstThatCameInWhicheverProcess(t *testing.T) {
	everywhere(t, queueIsServedInOrder)
}

func queueIsServedInOrder(t *testing.T, connect func(testing.TB) client) {
	t.Helper()
	const n = 5 // each in a process of its own, which knows nothing of the server's clock: its request decides the place
	f := newFleet(t, connect, n, Config{}).listening()
	held := []*Lease{take(t, f.lockers[0]), take(t, f.lockers[1])}
	var queue []*waiter
	for i := range n {
		queue = append(queue, wait(t, f.lockers[i]))
		f.awaitWaiters(i + 1)
	}
	if _, err := f.lockers[0].TryLock(t.Context(), "a"); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("TryLock past waiters: %v", err)
	}
	for i, w := range queue {
		unlock(t, held[i])
		held = append(held, w.Got())
		for _, behind := range queue[i+1:] {
			expect.Equal(t, "those behind it wait", behind.Waits(), true)
		}
	}
	unlock(t, held[len(queue):]...)
}

func TestTheCallersOfAProcessGetPermitsInTheirOrderThroughItsDoor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone, 1, Config{Permits: 1}).listening()
	l := take(t, f.lockers[0])
	inside := f.lockers[0].doors.Width
	var queue []*waiter
	for i := range 3 * inside {
		queue = append(queue, wait(t, f.lockers[0]))
		f.awaitWaiters(min(i+1, inside))
		redistest.Await(t, "the others are at the door", func() bool { return f.lockers[0].doors.Waiting("a") == max(i+1-inside, 0) })
	}
	for i, w := range queue {
		unlock(t, l)
		l = w.Got()
		for _, behind := range queue[i+1:] {
			expect.Equal(t, "those behind it wait", behind.Waits(), true)
		}
	}
	unlock(t, l)
}

func TestNeverMoreThanPermitsWorkAtOnceAndAllAreUsed(t *testing.T) {
	everywhere(t, func(t *testing.T, connect func(testing.TB) client) {
		const limit = 3
		callers := expect.Samples(48, 120)
		f := newFleet(t, connect, 4, Config{Permits: limit}).listening()
		redistest.Await(t, "all work, and none loses its permit, as on a machine that stands still for the seconds that a grant has until it is confirmed", func() bool {
			var running, most, done atomic.Int64
			var lost atomic.Bool
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() { // owner: the test; ends with Do; joined below
					err := f.lockers[i%4].Do(t.Context(), "a", func(ctx context.Context, l *Lease) error {
						if n := running.Add(1); n > most.Load() {
							most.Store(n)
						}
						defer running.Add(-1)
						done.Add(1)
						return l.Extend(ctx)
					})
					if errors.Is(err, ErrLeaseLost) {
						lost.Store(true)
					} else if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			expect.Equal(t, "holders in the end", len(f.info().Holders), 0)
			if lost.Load() {
				return false
			}
			expect.Equal(t, "done", done.Load(), int64(callers))
			if most.Load() > limit {
				t.Errorf("%d at once", most.Load())
			}
			return true
		})
	})
}

func TestCancelledWaitLeavesNothingInRedis(t *testing.T) {
	everywhere(t, func(t *testing.T, connect func(testing.TB) client) {
		f := newFleet(t, connect, 2, Config{})
		held := []*Lease{take(t, f.lockers[0]), take(t, f.lockers[0])}
		var waiters []*waiter
		for range 5 {
			waiters = append(waiters, wait(t, f.lockers[1]))
		}
		f.awaitWaiters(5)
		for _, w := range waiters {
			w.Leave(nil)
			<-w.Done
			if !errors.Is(w.Err(), context.Canceled) { // and ErrNotAcquired, once it has heard of the others: see locktest
				t.Errorf("the wait ended with %v", w.Err())
			}
		}
		f.awaitWaiters(0)
		unlock(t, held...)
		all := callsAt(protocol, keys.Tagged(f.prefix, "a")).Keys
		for _, key := range all[1:] {
			expect.Equal(t, key, f.redis.Exists(t.Context(), key).Val(), 0)
		}
		for field := range f.redis.HGetAll(t.Context(), all[0]).Val() {
			if !slices.Contains([]string{"longest", "kept", "ticket", "asked", "grace"}, field) {
				t.Errorf("%s is left", field)
			}
		}
	})
}

func TestAThousandThatGiveUpCostRedisNoMoreThanThoseInside(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 1, Config{}).listening()
	held := []*Lease{take(t, f.lockers[0]), take(t, f.lockers[0])}
	inside := f.lockers[0].doors.Width
	before := s.Commands()["hset"]
	var crowd []*waiter
	for range 1000 {
		crowd = append(crowd, wait(t, f.lockers[0]))
	}
	redistest.Await(t, "the others wait at the door", func() bool { return f.lockers[0].doors.Waiting("a") == len(crowd)-inside })
	f.awaitWaiters(inside)
	for i := range crowd { // the last first, so that nobody takes the place of one inside
		crowd[len(crowd)-1-i].Leave(nil)
	}
	for _, w := range crowd {
		if <-w.Done; !errors.Is(w.Err(), context.Canceled) {
			t.Errorf("a caller that gave up got %v", w.Err())
		}
	}
	f.awaitWaiters(0)
	if n := s.Commands()["hset"] - before; n > int64(30*inside) { // a place takes four or so
		t.Errorf("%d changes for %d places", n, inside)
	}
	unlock(t, held...)
	unlock(t, take(t, f.lockers[0]))
}

// A deployment changes the number. Callers with the larger number never exceed it. Callers with the smaller one get in when fewer than that
// hold, and wait for this at the head of the queue.
func TestWhileTheNumberOfPermitsChangesEachGoesByItsOwn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone, 1, Config{Permits: 3}).listening()
	smaller := f.join(shared.Client(t), Config{Permits: 2})
	f.listening()
	held := []*Lease{take(t, f.lockers[0]), take(t, smaller)}
	if _, err := smaller.TryLock(t.Context(), "a"); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("a third of two: %v", err)
	}
	held = append(held, take(t, f.lockers[0]))
	first := wait(t, smaller)
	f.awaitWaiters(1)
	second := wait(t, f.lockers[0])
	f.awaitWaiters(2)
	unlock(t, held[0])
	expect.Equal(t, "holders, when the first in the queue wants fewer", len(f.info().Holders), 2)
	expect.Equal(t, "the first waits", first.Waits(), true)
	expect.Equal(t, "the second waits", second.Waits(), true)
	unlock(t, held[1])
	held[0] = first.Got()
	held[1] = second.Got()
	expect.Equal(t, "holders", len(f.info().Holders), 3)
	unlock(t, held...)
}

func TestRevokeTakesAllPermitsAndThoseThatWaitGetThem(t *testing.T) {
	everywhere(t, func(t *testing.T, connect func(testing.TB) client) {
		f := newFleet(t, connect, 2, Config{TTL: 5 * time.Second}).listening()
		held := []*Lease{take(t, f.lockers[0]), take(t, f.lockers[0])}
		next := wait(t, f.lockers[1])
		f.awaitWaiters(1)
		n, err := f.lockers[1].Revoke(t.Context(), "a")
		if err != nil || n != 2 {
			t.Errorf("%d revoked, %v", n, err)
		}
		l := next.Got()
		for _, old := range held {
			<-old.Context().Done()
			if err := old.Unlock(t.Context()); !errors.Is(err, ErrRevoked) {
				t.Errorf("a revoked one is unlocked: %v", err)
			}
		}
		if holders := f.info().Holders; len(holders) != 1 || holders[0].Token != l.Token() {
			t.Errorf("held by %v, and not by %s", holders, l.Token())
		}
		unlock(t, l)
	})
}

func TestTheQueueIsServedUnderSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	queueIsServedInOrder(t, func(tb testing.TB) client { return s.FailoverClient(tb) })
}

package rwlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestReadersShareAndAWriterIsAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, a arena) {
		f := newFleet(t, a, 2, Config{})
		r1, r2 := must(t, f.lockers[0], (*Locker).RLock, "a"), must(t, f.lockers[1], (*Locker).RLock, "a")
		if _, err := f.lockers[1].TryLock(t.Context(), "a"); !errors.Is(err, ErrNotAcquired) {
			t.Errorf("TryLock beside readers: %v", err)
		}
		unlock(t, r1)
		unlock(t, r2)
		w := must(t, f.lockers[0], (*Locker).TryLock, "a")
		for _, try := range []take{(*Locker).TryLock, (*Locker).TryRLock} {
			if _, err := try(f.lockers[1], t.Context(), "a"); !errors.Is(err, ErrNotAcquired) {
				t.Errorf("try beside a writer: %v", err)
			}
		}
		unlock(t, w)
		unlock(t, must(t, f.lockers[1], (*Locker).TryRLock, "a"))
	})
}

func TestQueueIsServedInPhases(t *testing.T) { everywhere(t, queueIsServedInPhases) }

func queueIsServedInPhases(t *testing.T, a arena) {
	t.Helper()
	f := newFleet(t, a, 3, Config{}).listening()
	first := must(t, f.lockers[0], (*Locker).RLock, "a")
	w1 := wait(t, f.lockers[1], (*Locker).Lock, "a")
	f.awaitWaiting("a", 1, 0)
	w2 := wait(t, f.lockers[2], (*Locker).Lock, "a")
	f.awaitWaiting("a", 2, 0)
	var readers []*waiter
	for i := range 4 {
		readers = append(readers, wait(t, f.lockers[i%3], (*Locker).RLock, "a"))
	}
	f.awaitWaiting("a", 2, 4)
	if _, err := f.lockers[0].TryRLock(t.Context(), "a"); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("TryRLock past a writer that waits: %v", err)
	}
	unlock(t, first)
	writer := w1.Got()
	f.awaitWaiting("a", 1, 4)
	unlock(t, writer)
	for _, r := range readers {
		r.Got()
	}
	if !w2.Waits() {
		t.Error("the second writer came before the readers have left")
	}
	for i, r := range readers {
		expect.Equal(t, "fence of reader "+fmt.Sprint(i), r.Got().Fence(), writer.Fence())
		unlock(t, r.Got())
	}
	if last := w2.Got(); last.Fence() <= writer.Fence() {
		t.Errorf("fence %d after %d", last.Fence(), writer.Fence())
	}
}

func TestReadersThatWaitForAWriterThatLeavesGoAhead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 3, Config{}).listening()
	must(t, f.lockers[0], (*Locker).RLock, "a")
	w := wait(t, f.lockers[1], (*Locker).Lock, "a")
	f.awaitWaiting("a", 1, 0)
	r := wait(t, f.lockers[2], (*Locker).RLock, "a")
	f.awaitWaiting("a", 1, 1)
	w.Leave(nil)
	r.Got()
	<-w.Done
	if !errors.Is(w.Err(), context.Canceled) { // and ErrNotAcquired, once it has heard of the reader: see locktest
		t.Errorf("the wait ended with %v", w.Err())
	}
}

func TestCancelledWaitLeavesNothingInRedis(t *testing.T) {
	everywhere(t, func(t *testing.T, a arena) {
		f := newFleet(t, a, 2, Config{})
		held := must(t, f.lockers[0], (*Locker).Lock, "a")
		var waiters []*waiter
		for range rw.WritersWidth {
			waiters = append(waiters, wait(t, f.lockers[1], (*Locker).Lock, "a"),
				wait(t, f.lockers[1], (*Locker).RLock, "a"))
		}
		f.awaitWaiting("a", rw.WritersWidth, rw.WritersWidth)
		for _, w := range waiters {
			w.Leave(nil)
			<-w.Done
		}
		f.awaitWaiting("a", 0, 0)
		unlock(t, held)
		for _, key := range newCaller(f.lockers[0], "a", rw.Writing).Keys[1:] {
			if n := f.redis.Exists(t.Context(), key).Val(); n != 0 {
				t.Errorf("%s is left", key)
			}
		}
		for field := range f.redis.HGetAll(t.Context(), newCaller(f.lockers[0], "a", rw.Writing).Keys[0]).Val() {
			if !slices.Contains([]string{"fence", "longest", "kept", "ticket", "asked", "grace"}, field) {
				t.Errorf("%s is left", field)
			}
		}
	})
}

func TestDoHoldsTheLockAndItsContextCarriesTheFence(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	k := f.lockers[0]
	oops := errors.New("oops")
	err := k.Do(t.Context(), "a", func(ctx context.Context, l *Lease) error {
		fence, ok := FenceFrom(ctx)
		expect.Equal(t, "fence", fence, l.Fence())
		expect.Equal(t, "fence of the lease's context", ok, true)
		if again, _ := FenceFrom(l.Context()); again != fence || fence == 0 {
			t.Errorf("fences %d and %d", fence, again)
		}
		expect.Equal(t, "holder", f.info("a").Token, l.Token())
		return oops
	})
	if !errors.Is(err, oops) {
		t.Errorf("Do returned %v", err)
	}
	err = k.RDo(t.Context(), "a", func(context.Context, *Lease) error {
		expect.Equal(t, "readers", f.info("a").Readers, 1)
		return nil
	})
	if err != nil || f.info("a").Readers != 0 {
		t.Errorf("RDo: %v, %+v", err, f.info("a"))
	}
	if _, ok := FenceFrom(t.Context()); ok {
		t.Error("a context without a lease has a fence")
	}
}

func TestDoUnlocksWhenItsFunctionPanicsAndWhenItsContextIsDead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	err := f.lockers[0].Do(ctx, "a", func(ctx context.Context, _ *Lease) error {
		cancel()
		return context.Cause(ctx)
	})
	expect.Equal(t, "error of a cancelled Do", errors.Is(err, context.Canceled), true)
	expect.Equal(t, "holder", f.info("a").Token, "")
	func() {
		defer func() { expect.Equal(t, "panic", recover(), any("boom")) }()
		_ = f.lockers[0].Do(t.Context(), "a", func(context.Context, *Lease) error { panic("boom") })
	}()
	expect.Equal(t, "holder", f.info("a").Token, "")
}

func TestManyProcessesAndCallersKeepWritersApart(t *testing.T) {
	everywhere(t, func(t *testing.T, a arena) {
		f := newFleet(t, a, 4, Config{})
		var writers, readers atomic.Int64
		var last int64 // of the fences; guarded by the lock itself
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				for n := range expect.Samples(8, 20) {
					how, count := (*Locker).RDo, &readers
					if (n+i)%5 == 0 {
						how, count = (*Locker).Do, &writers
					}
					err := how(f.lockers[i%4], t.Context(), "a", func(_ context.Context, l *Lease) error {
						count.Add(1)
						defer count.Add(-1)
						if w, r := writers.Load(), readers.Load(); w > 1 || w == 1 && r > 0 {
							t.Errorf("%d writers and %d readers", w, r)
						}
						if l.Writes() {
							if l.Fence() <= last {
								t.Errorf("fence %d after %d", l.Fence(), last)
							}
							last = l.Fence()
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}

func TestOneProcessIsSentOneMessageForAllItsReaders(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 3, Config{}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "a")
	var readers []*waiter
	for i := range 20 {
		readers = append(readers, wait(t, f.lockers[1+i%2], (*Locker).RLock, "a"))
	}
	f.awaitWaiting("a", 0, 20)
	before := s.Commands()["publish"]
	unlock(t, l)
	for _, r := range readers {
		r.Got()
	}
	expect.Equal(t, "messages", s.Commands()["publish"]-before, 2)
}

// The scripts grant in parts, as Lua's stack has room for some thousand arguments.
func TestThousandsOfReadersAreAdmittedAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	held := must(t, f.lockers[0], (*Locker).Lock, "a")
	const crowd = 4500 // two arguments each
	var calls []*script.Call
	for i := range crowd {
		call := callerOf(held).Asking(fmt.Sprint("reader", i), rw.Reading.Arg(), time.Minute, time.Minute, queue.Unlimited, "", 0)
		calls = append(calls, &call)
	}
	script.RunAll(t.Context(), f.redis, calls)
	expect.Equal(t, "readers in the queue", f.info("a").WaitingReaders, crowd)
	unlock(t, held)
	expect.Equal(t, "readers", f.info("a").Readers, crowd)
}

func TestTheQueueIsServedUnderSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	queueIsServedInPhases(t, func(tb testing.TB) client { return s.FailoverClient(tb) })
}

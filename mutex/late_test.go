package mutex

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The first request is held up on its way. The call asks again, gets the lock and gives it up, and others have it. Only then does the first
// request arrive.
func TestARequestThatArrivesAfterItsCallHasUnlockedGetsNothing(t *testing.T) {
	t.Parallel()
	for _, cycles := range []int{0, 1, 20} {
		t.Run(strconv.Itoa(cycles), func(t *testing.T) {
			t.Parallel()
			f, p := behind(t, Config{TTL: time.Hour})
			late := p.On(lockCommand, redistest.Hold).Times(1)
			l := f.lock(0, "k")
			expect.Equal(t, "requests held up", late.Count(), 1)
			f.unlock(l)
			for range cycles {
				f.unlock(f.lock(1, "k"))
			}
			before := shared.Commands()["evalsha"] + shared.Commands()["eval"]
			late.Release()
			redistest.Await(t, "the late request", func() bool { return shared.Commands()["evalsha"]+shared.Commands()["eval"] > before })
			f.awaitFree("k")
			f.unlock(must(t)(f.lockers[1].TryLock(t.Context(), "k")))
		})
	}
}

// The first request of a TryLock is held up on its way. It asks again, and others have the lock. They give it up, and only then the first
// request arrives.
func TestARequestThatArrivesAfterItsTryLockWasRefusedGetsNothing(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, cfg Config) {
		f, p := behind(t, Config{TTL: time.Hour, Fair: cfg.Fair})
		other := f.lock(1, "k")
		late := p.On(lockCommand, redistest.Hold).Times(1)
		_, err := f.lockers[0].TryLock(t.Context(), "k")
		expect.ErrorIs(t, err, ErrNotAcquired)
		expect.Equal(t, "requests held up", late.Count(), 1)
		redistest.Await(t, "Redis is to refuse the request", func() bool { return f.redis.Exists(t.Context(), keysOf(f.key("k"))[2]).Val() == 1 })
		f.unlock(other)
		before := shared.Commands()["evalsha"] + shared.Commands()["eval"]
		late.Release()
		redistest.Await(t, "the late request", func() bool { return shared.Commands()["evalsha"]+shared.Commands()["eval"] > before })
		f.unlock(must(t)(f.lockers[1].TryLock(t.Context(), "k")))
	})
}

// The reply to a release comes late, and others have the lock before it comes.
func TestAnUnlockThatIsAnsweredLateHasNotLostItsLease(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), Config{TTL: time.Hour, RedisTimeout: time.Minute}, p.Client(t), shared.Client(t)).listening()
	late := p.On(unlockCommand, redistest.HoldReply).Times(1)
	l, unlocked := f.lock(0, "k"), make(chan error, 1)
	go func() { unlocked <- l.Unlock(t.Context()) }() // owner: the test; ends with the reply; joined by receiving
	<-late.Hit()
	f.unlock(f.lock(1, "k"))
	select {
	case err := <-unlocked:
		t.Errorf("it returned without the reply: %v", err)
	case <-time.After(100 * time.Millisecond): // longer than a caller waits for an answer to what it asks by itself
		late.Release()
		if err := <-unlocked; err != nil {
			t.Error(err)
		}
	}
}

func TestAWaiterIsNotGrantedWhatItWillNotWaitFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	l := f.lock(0, "k")
	var last calls
	for _, patience := range []int64{0, 1, queue.Unlimited} {
		last = newCalls(t.Context(), f.key("k"), "")
		call := last.asking(time.Minute, longestGrace, patience, "")
		if err := call.Run(t.Context(), f.redis).Err(); err != nil {
			t.Fatal(err)
		}
	}
	expect.Equal(t, "waiters", must2(f.lockers[0].Inspect(t.Context(), "k")).Waiters, 2) // one of them waits for a millisecond
	asked := f.redis.Time(t.Context()).Val()
	redistest.Await(t, "the end of its patience", func() bool { return f.redis.Time(t.Context()).Val().Sub(asked) > 2*time.Millisecond })
	f.unlock(l)
	expect.Equal(t, "holder", must2(f.lockers[0].Inspect(t.Context(), "k")).Token, last.token)
	f.run(last.releasing(successor{}, false))
}

func TestALeaseThatIsOverBeforeItsAnswerComesIsAnError(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, cfg Config) {
		f := newFleetOn(t, shared.Client(t), Config{Fair: cfg.Fair, TTL: 100 * time.Millisecond, FixedLease: true},
			redistest.StartFar(t, shared.Addr(), 160*time.Millisecond).Client(t))
		for name, lock := range map[string]func(context.Context, string) (*Lease, error){
			"Lock": f.lockers[0].Lock, "TryLock": f.lockers[0].TryLock,
		} {
			if _, err := lock(patient(t), "k"); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("%s: %v", name, err)
			}
			f.awaitFree("k")
		}
		err := f.lockers[0].Do(patient(t), "k", func(context.Context, *Lease) error {
			t.Error("it was called")
			return nil
		})
		expect.ErrorIs(t, err, ErrLeaseLost)
	})
}

func TestATTLThatSomebodyElseSetsIsMadeGood(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	l := f.lock(0, "k")
	f.redis.PExpire(t.Context(), f.key("k"), 5*time.Second)
	if err := l.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ttl := f.redis.PTTL(t.Context(), f.key("k")).Val(); ttl < 10*time.Minute {
		t.Errorf("the lock is forgotten in %v", ttl)
	}
	f.unlock(l)
}

// Contention first, then the majority stops: the wait goes on, as that of a Locker would.
func TestAQuorumThatStopsDuringAWaitIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := newCouncil(t)
	q := c.quorum(Config{TTL: time.Hour, RedisTimeout: time.Second})
	l := must(t)(q.Lock(patient(t), "k"))
	ctx, cancel := context.WithCancel(patient(t))
	done := make(chan error, 1)
	go func() { // owner: the test; ends with ctx; joined by receiving
		_, err := q.Lock(ctx, "k")
		done <- err
	}()
	redistest.Await(t, "it asks", func() bool { return c.proxies[0].Commands()["evalsha"] > 4 })
	for i := range 3 {
		c.proxies[i].Refuse(true)
	}
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(3 * time.Second): // longer than a round without a majority takes
	}
	cancel()
	expect.ErrorIs(t, <-done, ErrNotAcquired, context.Canceled)
	for i := range 3 {
		c.proxies[i].Refuse(false)
	}
	awaitServers(t, q)
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

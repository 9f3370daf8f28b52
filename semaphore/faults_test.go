package semaphore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/permits"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// behind makes a fleet of one locker on the server and one behind a proxy.
func behind(t *testing.T, cfg Config) (f *fleet, far *Locker, p *redistest.Proxy) {
	t.Helper()
	p = redistest.StartProxy(t, shared.Addr())
	f = newFleet(t, standalone, 1, cfg)
	return f, f.join(p.Client(t), cfg), p
}

var (
	acquireCommand   = redistest.Script(permits.Protocol().Acquire.Source())
	heartbeatCommand = redistest.Script(permits.Protocol().Heartbeat.Source())
	renewCommand     = redistest.Script(permits.Protocol().Renew.Source())
	releaseCommand   = redistest.Script(permits.Protocol().Release.Source())
)

// known makes the server know the scripts, so that faults meet the request they are for.
func known(t *testing.T, k *Locker) {
	t.Helper()
	l, err := k.Lock(t.Context(), "known")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock(t, l)
}

func TestALostReplyAtEachStepTakesNoSecondPermit(t *testing.T) {
	t.Parallel()
	for _, how := range []func(*Locker, context.Context, string) (*Lease, error){(*Locker).Lock, (*Locker).TryLock} {
		f, k, p := behind(t, Config{})
		known(t, k)
		for _, command := range []redistest.Match{acquireCommand, renewCommand, releaseCommand} {
			p.On(command, redistest.DropReply).Times(1)
		}
		l, err := how(k, t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, "holders", len(f.info().Holders), 1)
		if err := l.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		unlock(t, l)
		expect.Equal(t, "holders in the end", len(f.info().Holders), 0)
	}
}

func TestALostReplyOfAWaiterLeavesItInItsPlace(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{})
	f.listening()
	held := []*Lease{take(t, f.lockers[0]), take(t, f.lockers[0])}
	rule := p.On(acquireCommand, redistest.DropReply).Times(1)
	w := wait(t, k)
	<-rule.Hit()
	f.awaitWaiters(1)
	second := wait(t, f.lockers[0])
	f.awaitWaiters(2)
	unlock(t, held[0])
	l := w.got()
	expect.Equal(t, "the second waits", second.waits(), true)
	unlock(t, l)
	unlock(t, second.got(), held[1])
}

func TestAPermitThatIsGrantedAfterItsCallerHasLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{})
	known(t, k)
	rule := p.On(acquireCommand, redistest.HoldReply).Times(1)
	w := wait(t, k)
	<-rule.Hit()
	f.awaitHolders(1)
	w.leave()
	<-w.done
	rule.Release()
	f.awaitHolders(0)
}

func TestATryLockWhoseAnswerIsLostGivesThePermitBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone, 1, Config{TTL: time.Hour})
	p := redistest.StartProxy(t, shared.Addr())
	k := f.join(p.Client(t, func(o *redis.Options) {
		o.ReadTimeout = 300 * time.Millisecond // so that what is given up ends soon
	}), Config{TTL: time.Hour, RedisTimeout: brisk})
	known(t, f.lockers[0])
	for _, fault := range []redistest.Fault{redistest.SwallowReply, redistest.HoldReply} {
		lost := p.On(acquireCommand, fault)
		_, err := k.TryLock(t.Context(), "a")
		if err == nil || errors.Is(err, ErrNotAcquired) {
			t.Errorf("it is not known whether others have all permits, but the error is %v", err)
		}
		redistest.Await(t, "Redis has granted one", func() bool { return lost.Count() > 0 })
		lost.Remove()
		f.awaitHolders(0)
		redistest.Await(t, "Redis is asked again", func() bool {
			l, err := k.TryLock(t.Context(), "b")
			return err == nil && l.Unlock(t.Context()) == nil
		})
	}
}

// The request is held up on its way until its caller has left, and the release is known to have run.
func TestARequestThatArrivesAfterItsCallHasUnlockedGetsNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone, 1, Config{})
	c, token := permits.At(permits.Protocol(), keys.Tagged(f.prefix, "a")), keys.NewToken("")
	ask := c.Asking(token, 2, time.Minute, 0, queue.Unlimited, "", 0)
	release := c.Releasing(token, 0, true)
	if n, err := release.Run(t.Context(), f.redis).Int(); err != nil || n != queue.Lost {
		t.Errorf("%d, %v", n, err)
	}
	got, err := queue.ParseAsked(ask.Run(t.Context(), f.redis))
	if err != nil || got.Status != "busy" {
		t.Errorf("%+v, %v", got, err)
	}
	expect.Equal(t, "holders", len(f.info().Holders), 0)
}

func TestAGrantWhoseMessageIsLostIsFoundByAHeartbeat(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{TTL: time.Minute})
	f.listening()
	held := []*Lease{take(t, f.lockers[0]), take(t, f.lockers[0])}
	w := wait(t, k)
	f.awaitWaiters(1)
	p.BlackHoleSubscribers(true)
	unlock(t, held[0])
	if err := w.got().Extend(t.Context()); err != nil {
		t.Error(err)
	}
	unlock(t, w.lease, held[1])
}

func TestWithoutPushWaitersPoll(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{})
	p.On(redistest.Command("subscribe"), redistest.CutBefore)
	held := []*Lease{take(t, f.lockers[0]), take(t, f.lockers[0])}
	first := wait(t, k)
	f.awaitWaiters(1)
	second := wait(t, k)
	f.awaitWaiters(2)
	unlock(t, held...)
	unlock(t, first.got(), second.got())
}

// The first in the queue asks when the first lease ends, so no heartbeat is needed to replace a crashed holder.
func TestTheFirstInTheQueueReplacesACrashedHolderWithoutAHeartbeat(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{TTL: time.Minute})
	f.listening()
	long := take(t, f.lockers[0])
	crashes := f.join(shared.Client(t), Config{TTL: 900 * time.Millisecond, Watchdog: -1}) // less than a waiter without a heartbeat counts as alive
	take(t, crashes)
	p.On(heartbeatCommand, redistest.ReplyError("ERR no heartbeat"))
	w := wait(t, k)
	unlock(t, w.got(), long)
}

func TestALeaseEndsByItselfWhenRedisCannotBeReached(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{TTL: 3 * time.Second, RedisTimeout: brisk, Permits: 1})
	f.listening()
	l := take(t, k)
	next := wait(t, f.join(shared.Client(t), Config{TTL: 3 * time.Second, Permits: 1}))
	f.awaitWaiters(1)
	p.BlackHole(true)
	<-l.Context().Done()
	expect.ErrorIs(t, context.Cause(l.Context()), ErrLeaseLost)
	if time.Now().Before(l.TrustedUntil()) {
		t.Error("it ended while it was trusted")
	}
	after := next.got()
	p.BlackHole(false)
	p.Cut()
	if l.Unlock(t.Context()) == nil {
		t.Error("what was lost was unlocked")
	}
	unlock(t, after) // which it has not taken away
}

func TestUnlockHandsOnWhenRedisIsOutOfMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 2, Config{Permits: 1}).listening()
	l := take(t, f.lockers[0])
	w := wait(t, f.lockers[1])
	f.awaitWaiters(1)
	if err := f.redis.(*redis.Client).ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	unlock(t, l)
	unlock(t, w.got())
}

func TestCallsOnAServerThatHangsReturnItsErrorAndDoNotHang(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 1, Config{RedisTimeout: brisk})
	l := take(t, f.lockers[0])
	s.Pause()
	t.Cleanup(s.Resume)
	for what, err := range map[string]error{
		"Extend": l.Extend(t.Context()), "Unlock": l.Unlock(t.Context()),
		"Do": f.lockers[0].Do(t.Context(), "b", func(context.Context, *Lease) error { return nil }),
	} {
		if err == nil || errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrLeaseLost) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.Resume()
}

func TestAFlushEndsLeasesAndQueuesWaitersAnew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 2, Config{TTL: brisk, Permits: 1}).listening()
	l := take(t, f.lockers[0])
	w := wait(t, f.lockers[1])
	f.awaitWaiters(1)
	if err := f.redis.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-l.Context().Done()
	expect.ErrorIs(t, context.Cause(l.Context()), ErrLeaseLost)
	unlock(t, w.got())
}

func TestARestartThatForgetsPermitsIsFoundOutAndThoseThatWaitGoOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 2, Config{TTL: 2 * time.Second, Permits: 1}).listening()
	l := take(t, f.lockers[0])
	w := wait(t, f.lockers[1])
	f.awaitWaiters(1)
	s.Restart()
	<-l.Context().Done()
	expect.ErrorIs(t, context.Cause(l.Context()), ErrLeaseLost)
	<-w.done
	if w.err != nil { // it could not ask for longer than TTL
		w = wait(t, f.lockers[1])
	}
	unlock(t, w.got())
}

func TestWatchdogKeepsALeaseAndAFixedLeaseEnds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone, 1, Config{TTL: brisk, Permits: 1}).listening()
	l := take(t, f.lockers[0])
	began := l.TrustedUntil()
	redistest.Await(t, "the lease was renewed more than once", func() bool {
		return l.TrustedUntil().After(began.Add(brisk/2)) || l.Context().Err() != nil
	})
	_ = l.Unlock(t.Context()) // a machine that stands still may have lost it

	fixed := f.join(shared.Client(t), Config{TTL: brisk, FixedLease: true, Permits: 1})
	capped := f.join(shared.Client(t), Config{TTL: brisk, MaxHold: brisk, Permits: 1})
	f.listening()
	for _, k := range []*Locker{fixed, capped} {
		held := take(t, k)
		next := wait(t, f.lockers[0])
		<-held.Context().Done()
		expect.ErrorIs(t, context.Cause(held.Context()), ErrLeaseLost)
		_ = next.got().Unlock(t.Context()) // as above
	}
}

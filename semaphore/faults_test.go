package semaphore

import (
	"context"
	"errors"
	"testing"
	"time"

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
	acquireCommand   = redistest.Script(protocol.Acquire.Source())
	heartbeatCommand = redistest.Script(protocol.Heartbeat.Source())
	renewCommand     = redistest.Script(protocol.Renew.Source())
	releaseCommand   = redistest.Script(protocol.Release.Source())
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
	l := w.Got()
	expect.Equal(t, "the second waits", second.Waits(), true)
	unlock(t, l)
	unlock(t, second.Got(), held[1])
}

func TestAPermitThatIsGrantedAfterItsCallerHasLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{})
	known(t, k)
	rule := p.On(acquireCommand, redistest.HoldReply).Times(1)
	w := wait(t, k)
	<-rule.Hit()
	f.awaitHolders(1)
	w.Leave(nil)
	<-w.Done
	rule.Release()
	f.awaitHolders(0)
}

func TestATryLockWhoseAnswerIsLostGivesThePermitBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone, 1, Config{TTL: time.Hour})
	p := redistest.StartProxy(t, shared.Addr())
	k := f.join(p.Client(t, redistest.AsksAgain), Config{TTL: time.Hour, RedisTimeout: brisk})
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
	c, token := callsAt(protocol, keys.Tagged(f.prefix, "a")), keys.NewToken("")
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
	if err := w.Got().Extend(t.Context()); err != nil {
		t.Error(err)
	}
	unlock(t, w.Got(), held[1])
}

// The first in the queue asks when the first lease ends, so no heartbeat is needed to replace a crashed holder.
func TestTheFirstInTheQueueReplacesACrashedHolderWithoutAHeartbeat(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{TTL: time.Minute})
	f.listening()
	long := take(t, f.lockers[0])
	crashes := f.join(shared.Client(t), Config{TTL: 900 * time.Millisecond, FixedLease: true}) // less than a waiter without a heartbeat counts as alive
	take(t, crashes)
	p.On(heartbeatCommand, redistest.ReplyError("ERR no heartbeat"))
	w := wait(t, k)
	unlock(t, w.Got(), long)
}

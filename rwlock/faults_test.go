package rwlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// behind makes a fleet of one locker on the server and one behind a proxy.
func behind(t *testing.T, cfg Config, tweaks ...func(*redis.Options)) (f *fleet, far *Locker, p *redistest.Proxy) {
	t.Helper()
	p = redistest.StartProxy(t, shared.Addr())
	f = newFleet(t, standalone(t), 1, cfg)
	return f, f.join(p.Client(t, tweaks...), cfg), p
}

var (
	acquireCommand   = redistest.Script(rw.Protocol().Acquire.Source())
	releaseCommand   = redistest.Script(rw.Protocol().Release.Source())
	heartbeatCommand = redistest.Script(rw.Protocol().Heartbeat.Source())
	renewCommand     = redistest.Script(rw.Protocol().Renew.Source())
	downgradeCommand = redistest.Script(rw.Protocol().Downgrade.Source())
	upgradeCommand   = redistest.Script(rw.Protocol().Upgrade.Source())
)

// known makes the server know the scripts, so that faults meet the request they are for.
func known(t *testing.T, k *Locker) {
	t.Helper()
	l := must(t, k, (*Locker).Lock, "known")
	for _, err := range []error{l.Extend(t.Context()), l.Downgrade(t.Context()), l.TryUpgrade(t.Context()), l.Unlock(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLostRepliesMakeNobodyWaitForHimself(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]take{
		"Lock": (*Locker).Lock, "RLock": (*Locker).RLock, "TryLock": (*Locker).TryLock, "TryRLock": (*Locker).TryRLock,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, k, p := behind(t, Config{})
			known(t, k)
			for _, command := range []redistest.Match{acquireCommand, renewCommand, downgradeCommand, upgradeCommand, releaseCommand} {
				p.On(command, redistest.DropReply).Times(1)
			}
			l := must(t, k, how, "a")
			for op, err := range map[string]error{
				"extend": l.Extend(t.Context()), "downgrade": l.Downgrade(t.Context()), "upgrade": l.TryUpgrade(t.Context()),
			} {
				if err != nil {
					t.Errorf("%s: %v", op, err)
				}
			}
			unlock(t, l)
			unlock(t, must(t, k, (*Locker).TryLock, "a"))
		})
	}
}

func TestLostReplyOfAWaiterLeavesItInItsPlace(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{})
	f.listening()
	held := must(t, f.lockers[0], (*Locker).Lock, "a")
	rule := p.On(acquireCommand, redistest.DropReply).Times(1)
	w := wait(t, k, (*Locker).Lock, "a")
	<-rule.Hit()
	f.awaitWaiting("a", 1, 0)
	second := wait(t, f.lockers[0], (*Locker).Lock, "a")
	f.awaitWaiting("a", 2, 0)
	unlock(t, held)
	unlock(t, w.Got())
	unlock(t, second.Got())
}

func TestLockThatIsGrantedAfterItsCallerHasLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{})
	known(t, k)
	rule := p.On(acquireCommand, redistest.Hold).Times(1)
	w := wait(t, k, (*Locker).Lock, "a")
	<-rule.Hit()
	w.Leave(nil)
	<-w.Done
	rule.Release()
	redistest.Await(t, "the lock was asked for, and released", func() bool {
		n, err := f.redis.HGet(t.Context(), newCaller(k, "a", rw.Writing).Keys[0], "fence").Int64()
		return err == nil && n > 0 && f.info("a").Token == ""
	})
}

func TestATryLockWhoseAnswerIsLostGivesTheLockBack(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]take{"TryLock": (*Locker).TryLock, "TryRLock": (*Locker).TryRLock} {
		for _, fault := range []redistest.Fault{redistest.SwallowReply, redistest.HoldReply} {
			t.Run(name+", "+string(fault), func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, standalone(t), 1, Config{TTL: time.Hour})
				p := redistest.StartProxy(t, shared.Addr())
				k := f.join(p.Client(t, redistest.AsksAgain), Config{TTL: time.Hour, RedisTimeout: brisk})
				known(t, f.lockers[0])
				lost := p.On(acquireCommand, fault)
				_, err := how(k, t.Context(), "a")
				if err == nil || errors.Is(err, ErrNotAcquired) {
					t.Errorf("it is not known whether somebody else has it, but the error is %v", err)
				}
				redistest.Await(t, "Redis has granted it", func() bool { return lost.Count() > 0 })
				lost.Remove()
				redistest.Await(t, "nobody holds", func() bool { return f.info("a").Token == "" && f.info("a").Readers == 0 })
			})
		}
	}
}

func TestUnlockReachesRedisThoughItsContextIsDeadAndIsDoneOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	l := must(t, f.lockers[0], (*Locker).Lock, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
	}
	next := must(t, f.lockers[1], (*Locker).TryLock, "a")
	if err := l.Unlock(ctx); err != nil {
		t.Error(err)
	}
	expect.Equal(t, "holder", f.info("a").Token, next.Token())
	if err := l.Extend(t.Context()); err == nil {
		t.Error("a lease that was unlocked can be extended")
	}
}

func TestGrantWhoseMessageIsLostIsFoundByAHeartbeat(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{TTL: time.Minute})
	f.listening()
	held := must(t, f.lockers[0], (*Locker).Lock, "a")
	w := wait(t, k, (*Locker).Lock, "a")
	f.awaitWaiting("a", 1, 0)
	p.BlackHoleSubscribers(true)
	unlock(t, held)
	expect.Equal(t, "holder", f.info("a").Token, w.Got().Token())
	if err := w.Got().Extend(t.Context()); err != nil {
		t.Error(err)
	}
}

// A writer behind two readers knows when the longer lease ends. It learns from a heartbeat that only the shorter one is left, but a
// heartbeat may come too late. So none comes here.
func TestAWriterBehindACrashedReaderLearnsThatItsLeaseIsTheLast(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{TTL: time.Minute})
	f.listening()
	short := f.join(shared.Client(t), Config{TTL: 900 * time.Millisecond, FixedLease: true}) // less than a waiter without a heartbeat counts as alive
	long := must(t, f.lockers[0], (*Locker).RLock, "a")
	must(t, short, (*Locker).RLock, "a") // crashes
	p.On(heartbeatCommand, redistest.ReplyError("ERR no heartbeat"))
	w := wait(t, k, (*Locker).Lock, "a")
	f.awaitWaiting("a", 1, 0)
	unlock(t, long)
	unlock(t, w.Got())
}

func TestFlushEndsLeasesAndQueuesWaitersAnew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 3, Config{TTL: brisk}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "a")
	w, r := wait(t, f.lockers[1], (*Locker).Lock, "a"), wait(t, f.lockers[2], (*Locker).RLock, "a")
	f.awaitWaiting("a", 1, 1)
	if err := f.redis.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-l.Context().Done()
	if cause := context.Cause(l.Context()); !errors.Is(cause, ErrLeaseLost) {
		t.Errorf("the context ended with %v", cause)
	}
	first, second := w, r
	select {
	case <-w.Done:
	case <-r.Done:
		first, second = r, w
	}
	unlock(t, first.Got())
	unlock(t, second.Got())
}

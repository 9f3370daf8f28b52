package mutex

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var (
	lockCommand   = redistest.Script(lockScript.Source())
	unlockCommand = redistest.Script(unlockScript.Source())
	renewCommand  = redistest.Script(renewScript.Source())
)

// behind is a fleet of one instance behind a proxy, and one that is not.
func behind(t *testing.T, cfg Config) (*fleet, *redistest.Proxy) {
	t.Helper()
	p := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), cfg, p.Client(t, redistest.AsksAgain), shared.Client(t))
	return f.listening(), p
}

func TestALostReplyDoesNotMakeTheHolderWaitForItself(t *testing.T) {
	t.Parallel()
	for what, command := range map[string]redistest.Match{"lock": lockCommand, "unlock": unlockCommand} {
		for _, fault := range []redistest.Fault{redistest.DropReply, redistest.SwallowReply} {
			t.Run(what+", "+string(fault), func(t *testing.T) {
				t.Parallel()
				f, p := behind(t, Config{TTL: time.Hour})
				lost := p.On(command, fault).Times(2)
				f.unlock(f.lock(0, "k"))
				expect.Equal(t, "replies lost", lost.Count(), 2)
				f.awaitFree("k")
			})
		}
	}
}

func TestALockThatIsGrantedTooLateIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*Locker, context.Context, string) (*Lease, error){
		"Lock": (*Locker).Lock, "TryLock": (*Locker).TryLock,
	} {
		for _, fault := range []redistest.Fault{redistest.HoldReply, redistest.SwallowReply, redistest.DropReply} {
			t.Run(name+", "+string(fault), func(t *testing.T) {
				t.Parallel()
				f, p := behind(t, Config{TTL: time.Hour, RedisTimeout: brisk})
				f.unlock(f.lock(1, "k")) // the server knows the script now
				lost := p.On(lockCommand, fault)
				_, err := ask(f.lockers[0], patient(t), "k")
				if err == nil || errors.Is(err, ErrNotAcquired) {
					t.Errorf("it is not known whether somebody else has it, but the error is %v", err)
				}
				redistest.Await(t, "Redis has granted it", func() bool { return lost.Count() > 0 })
				lost.Remove()
				f.awaitFree("k")
				f.unlock(f.lock(1, "k"))
			})
		}
	}
}

func TestARequestThatRedisGetsAfterItWasGivenUpIsUndone(t *testing.T) {
	t.Parallel()
	f, p := behind(t, Config{TTL: time.Hour, RedisTimeout: redisTimeout})
	held := p.On(lockCommand, redistest.Hold)
	ctx, cancel := context.WithCancel(t.Context())
	a := f.ask(ctx, 0, "k")
	<-held.Hit()
	cancel()
	if expect.ErrorIs(t, a.Err(), context.Canceled); errors.Is(a.Err(), ErrNotAcquired) {
		t.Errorf("nobody said that others have it: %v", a.Err())
	}
	held.Remove()
	redistest.Await(t, "the request ran, and was undone", func() bool {
		info, err := f.lockers[1].Inspect(context.Background(), "k")
		return err == nil && info.Fence > 0 && info.Token == ""
	})
}

func TestALeaseThatWasTakenAwayEndsWithTheNextRenewal(t *testing.T) {
	t.Parallel()
	f, _ := behind(t, Config{TTL: 4 * time.Second})
	l := f.lock(0, "k")
	if err := f.redis.Del(t.Context(), f.key("k")).Err(); err != nil {
		t.Fatal(err)
	}
	other := f.lock(1, "k")
	cause(t, l, ErrLeaseLost)
	if time.Until(l.TrustedUntil()) <= 0 {
		t.Error("it ended because its time had passed")
	}
	expect.ErrorIs(t, l.Unlock(t.Context()), ErrLeaseLost)
	f.unlock(other)
}

func TestRenewalsThatFailAreTriedAgain(t *testing.T) {
	t.Parallel()
	f, p := behind(t, Config{TTL: 4 * time.Second})
	refused := p.On(renewCommand, redistest.ReplyError("LOADING not yet")).Times(3)
	l := f.lock(0, "k")
	before := l.TrustedUntil()
	redistest.Await(t, "a renewal", func() bool { return l.TrustedUntil().After(before) })
	expect.Equal(t, "refused", refused.Count(), 3)
	f.unlock(l)
}

func TestAnUnlockThatIsRefusedForAWhileSaysWhyAndGoesOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleetOn(t, s.Client(t), Config{RedisTimeout: brisk, TTL: time.Minute}, s.Client(t))
	replicas := func(n string) {
		t.Helper()
		if err := f.redis.ConfigSet(t.Context(), "min-replicas-to-write", n).Err(); err != nil {
			t.Fatal(err)
		}
	}
	l := f.lock(0, "k")
	replicas("1")
	if err := l.Unlock(t.Context()); err == nil || !strings.Contains(err.Error(), "NOREPLICAS") {
		t.Errorf("error: %v", err)
	}
	replicas("0")
	f.awaitFree("k")
}

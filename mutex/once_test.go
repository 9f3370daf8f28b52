package mutex

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// everywhere runs a test on each kind of Redis.
func everywhere(t *testing.T, test func(t *testing.T, connect func() client)) {
	t.Helper()
	t.Parallel()
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		test(t, func() client { return shared.Client(t) })
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.SharedCluster(t)
		test(t, func() client { return c.Client(t) })
	})
	t.Run("serverless", func(t *testing.T) {
		t.Parallel()
		s := redistest.SharedServerless(t)
		test(t, func() client { return s.Client(t) })
	})
}

// join adds an instance with other settings.
func (f *fleet) join(rdb Redis, cfg Config) *Locker {
	f.Helper()
	cfg.Prefix = f.lockers[0].base.Config.Prefix
	config.SetDefault(&cfg.RedisTimeout, redisTimeout)
	k, err := New(rdb, cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = k.Close() }) // always nil
	f.lockers = append(f.lockers, k)
	return k
}

// look inspects the lock of the tests.
func (f *fleet) look() Info {
	f.Helper()
	info, err := f.lockers[0].Inspect(context.Background(), "a")
	if err != nil {
		f.Fatal(err)
	}
	return info
}

// once calls Once with a function that returns the error.
func once(t *testing.T, k *Locker, interval time.Duration, result error) bool {
	t.Helper()
	ran, err := k.Once(t.Context(), "a", interval, func(context.Context, *Lease) error { return result })
	if !errors.Is(err, result) || err != nil && result == nil {
		t.Errorf("it returned %v, want %v", err, result)
	}
	return ran
}

func TestInspectNamesTheInstanceThatRanAJobLast(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{Instance: "shop-2"})
	once(t, f.lockers[0], time.Hour, nil)
	expect.Equal(t, "instance", f.look().Instance, "shop-2")
}

func TestTheFleetRunsAJobOncePerInterval(t *testing.T) {
	everywhere(t, func(t *testing.T, connect func() client) {
		f := newFleetOn(t, connect(), Config{}, connect(), connect(), connect(), connect())
		var runs, ran atomic.Int64
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() { // owner: the test; ends with Once; joined below
				did, err := f.lockers[i%4].Once(t.Context(), "a", time.Hour, func(context.Context, *Lease) error {
					runs.Add(1)
					return nil
				})
				if did {
					ran.Add(1)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		expect.Equal(t, "runs", runs.Load(), 1)
		expect.Equal(t, "that report it", ran.Load(), 1)
		info := f.look()
		if info.Left < 59*time.Minute || info.Left > time.Hour {
			t.Errorf("held for another %v", info.Left)
		}
		if _, err := f.lockers[0].Revoke(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		expect.Equal(t, "runs after a Revoke", once(t, f.lockers[1], time.Hour, nil), true)
	})
}

func TestAJobRunsAgainWhenTheIntervalIsOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{})
	expect.Equal(t, "runs", once(t, f.lockers[0], 100*time.Millisecond, nil), true)
	redistest.Await(t, "it runs again", func() bool { return once(t, f.lockers[1], time.Hour, nil) })
	expect.Equal(t, "runs within an hour", once(t, f.lockers[0], time.Millisecond, nil), false)
}

func TestARunThatFailsOrPanicsIsTriedAgainByTheNextCall(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{})
	oops := errors.New("oops")
	expect.Equal(t, "runs", once(t, f.lockers[0], time.Hour, oops), true)
	func() {
		defer func() { expect.Equal(t, "panic", recover(), any("oops")) }()
		_, _ = f.lockers[1].Once(t.Context(), "a", time.Hour, func(context.Context, *Lease) error { panic("oops") })
	}()
	expect.Equal(t, "runs", once(t, f.lockers[1], time.Hour, nil), true)
	expect.Equal(t, "runs after a success", once(t, f.lockers[0], time.Hour, nil), false)
}

func TestTheRunOfAProcessThatDiedIsTriedAgainWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	dead := f.join(shared.Client(t), Config{TTL: 3 * time.Second, FixedLease: true}) // longer than a busy machine stands still for
	if _, err := dead.TryLock(t.Context(), "a"); err != nil {                        // as Once does; it is never unlocked
		t.Fatal(err)
	}
	redistest.Await(t, "it runs again", func() bool { return once(t, f.lockers[0], time.Hour, nil) })
}

func TestALockIsHeldForMinHoldThoughItsHolderIsDone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	quick := f.join(shared.Client(t), Config{MinHold: time.Hour})
	l := f.lock(1, "a")
	began := time.Now()
	f.unlock(l)
	if took := time.Since(began); took > 30*time.Minute {
		t.Errorf("Unlock took %v", took)
	}
	if _, err := f.lockers[0].TryLock(t.Context(), "a"); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("somebody else gets it: %v", err)
	}
	if _, err := quick.TryLock(t.Context(), "a"); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("the same instance gets it: %v", err)
	}
	if left := f.look().Left; left < 59*time.Minute || left > time.Hour {
		t.Errorf("held for another %v", left)
	}
	ctx := WithOwner(t.Context())
	for range 2 {
		if err := quick.Do(ctx, "owned", func(context.Context, *Lease) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}

func TestThoseThatWaitGetALockWhenItsMinHoldIsOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{MinHold: 300 * time.Millisecond})
	l := f.lock(0, "a")
	held := l.held.Claim.(*claim).since
	got := make(chan error, 2)
	for _, k := range f.lockers {
		go func() { // owner: the test; ends with Lock; joined by receiving
			l, err := k.Lock(t.Context(), "a")
			if err == nil && time.Since(held) < 300*time.Millisecond {
				err = errors.New("it was acquired too soon")
			}
			if err == nil {
				err = l.Unlock(t.Context())
			}
			got <- err
		}()
	}
	f.unlock(l)
	for range f.lockers {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
}

// A request of the holder that arrives after it has given up the lock must neither end nor prolong the rest.
func TestRequestsThatArriveLateDoNotChangeTheRest(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	l := f.lock(0, "a")
	c := l.held.Claim.(*claim)
	park := c.parking(time.Hour, true)
	run := func(what string, reply int64, err error, want int64) {
		t.Helper()
		if err != nil || reply != want {
			t.Errorf("%s: %d, %v; want %d", what, reply, err, want)
		}
	}
	reply, err := park.Run(t.Context(), f.redis).Int64()
	run("park", reply, err, queue.Done)
	late := c.parking(2*time.Hour, true)
	reply, err = late.Run(t.Context(), f.redis).Int64()
	run("a second copy", reply, err, queue.Done)
	renewal := c.renewal(time.Minute, 0)
	reply, err = renewal.Run(t.Context(), f.redis).Int64()
	run("renewal", reply, err, queue.Lost)
	unlock := c.releasing(successor{}, true)
	reply, err = unlock.Run(t.Context(), f.redis).Int64()
	run("unlock", reply, err, queue.Lost)
	ask := c.asking(time.Minute, time.Second, int64(60_000), "")
	answer, err := parseAnswer(ask.Run(t.Context(), f.redis), time.Minute)
	if err != nil || answer.Granted {
		t.Errorf("ask: %+v, %v", answer, err)
	}
	info := f.look()
	expect.Equal(t, "token", info.Token, c.id+"+")
	expect.Equal(t, "waiters", info.Waiters, 0)
	if info.Left < 59*time.Minute || info.Left > time.Hour {
		t.Errorf("held for another %v", info.Left)
	}
	if ttl := f.redis.PTTL(t.Context(), c.keys[0]).Val(); ttl < time.Hour {
		t.Errorf("the lock is forgotten in %v", ttl)
	}
	l.held.Lose(ErrLeaseLost)
}

func TestTheReplyOfAParkMayBeLost(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	f := newFleet(t, 1, Config{})
	k := f.join(p.Client(t), Config{})
	expect.Equal(t, "runs", once(t, k, time.Millisecond, nil), true) // the server knows the scripts
	redistest.Await(t, "it is over", func() bool { return f.look().Token == "" })
	rule := p.On(redistest.Script(parkScript.Source()), redistest.DropReply).Times(1)
	expect.Equal(t, "runs", once(t, k, time.Hour, nil), true)
	expect.Equal(t, "lost replies", rule.Count(), 1)
	expect.Equal(t, "runs elsewhere", once(t, f.lockers[0], time.Hour, nil), false)
}

func TestOnceThatWasRevokedMeanwhileSaysSo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{})
	ran, err := f.lockers[0].Once(t.Context(), "a", time.Hour, func(context.Context, *Lease) error {
		if _, err := f.lockers[1].Revoke(t.Context(), "a"); err != nil { // not ctx, which it ends
			t.Error(err)
		}
		return nil
	})
	expect.Equal(t, "runs", ran, true)
	expect.ErrorIs(t, err, ErrRevoked)
	expect.Equal(t, "runs again", once(t, f.lockers[1], time.Hour, nil), true)
}

func TestOnceAndMinHoldRefuseWhatIsOutOfRange(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	for _, interval := range []time.Duration{-1, 0, time.Microsecond, 11 * 365 * 24 * time.Hour} {
		if _, err := f.lockers[0].Once(t.Context(), "a", interval, func(context.Context, *Lease) error { return nil }); err == nil {
			t.Errorf("%v is an interval", interval)
		}
	}
	if _, err := f.lockers[0].Once(t.Context(), "a", time.Hour, nil); err == nil {
		t.Error("nothing is done once")
	}
	for _, d := range []time.Duration{-5, time.Microsecond, 11 * 365 * 24 * time.Hour} {
		if _, err := New(shared.Client(t), Config{MinHold: d}); err == nil || !strings.Contains(err.Error(), "Config.MinHold") {
			t.Errorf("%v: %v", d, err)
		}
	}
	if _, err := NewQuorum([]Redis{shared.Client(t)}, Config{MinHold: time.Second}); err == nil || !strings.Contains(err.Error(), "MinHold") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran, err := f.lockers[0].Once(ctx, "a", time.Hour, func(context.Context, *Lease) error { return nil })
	expect.Equal(t, "runs", ran, false)
	expect.ErrorIs(t, err, context.Canceled)
}

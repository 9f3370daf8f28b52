package mutex

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// three is a Quorum of three servers, on two instances. Other tests use the second and the third server, too.
type three struct {
	*testing.T

	servers [3]*redistest.Server
	around  [3]*redis.Client // of the servers, to look around with
	prefix  string
	a, b    *Quorum
}

func newThree(t *testing.T, cfg Config) *three {
	t.Helper()
	f := &three{T: t, prefix: "test-" + rand.Text()}
	copy(f.servers[:], redistest.SharedServers(t, 3))
	f.servers[0] = redistest.Start(t)
	for i, s := range f.servers {
		f.around[i] = s.Client(t)
	}
	cfg.Prefix, cfg.RedisTimeout = f.prefix, redisTimeout
	open := func() *Quorum {
		var clients []Redis
		for _, s := range f.servers {
			clients = append(clients, s.Client(t))
		}
		q, err := NewQuorum(clients, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = q.Close() }) // always nil
		return q
	}
	f.a, f.b = open(), open()
	return f
}

// holder is the token that has the lock on one of the servers.
func (f *three) holder(i int) string {
	f.Helper()
	token, err := f.around[i].HGet(context.Background(), lockKey(f.prefix, "k"), "token").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		f.Fatal(err)
	}
	return token
}

// takeThird takes the lock on the third server alone.
func (f *three) takeThird() *Lease {
	f.Helper()
	alone, err := New(f.around[2], Config{Prefix: f.prefix, RedisTimeout: redisTimeout})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = alone.Close() }) // always nil
	return must(f.T)(alone.Lock(patient(f), "k"))
}

// leap sets the clock of the first server.
func (f *three) leap(ahead time.Duration) {
	f.Helper()
	if err := f.servers[0].SetClock(ahead); errors.Is(err, errors.ErrUnsupported) {
		f.Skip(err)
	} else if err != nil {
		f.Fatal(err)
	}
	now := f.around[0].Time(f.Context()).Val()
	if off := time.Until(now) - ahead; off.Abs() > ahead.Abs()/2 {
		f.Fatalf("the server's clock is off by %v", off)
	}
}

// ask starts a Lock of the second instance.
func (f *three) ask() *waiter { return locktest.Wait(f, context.Background(), f.b.Lock, "k") }

// All three servers have granted the lock, so the two others are a majority without the one whose clock is wrong.
func TestAQuorumLeaseLivesOnWhenTheClockOfOneServerIsSet(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newThree(t, Config{TTL: 6 * time.Second})
			l := must(t)(f.a.Lock(patient(t), "k"))
			for i := range f.servers {
				redistest.Await(t, "each server has granted it", func() bool { return f.holder(i) == l.Token() })
			}
			next := f.ask()
			f.leap(ahead)
			first := l.TrustedUntil()
			redistest.Await(t, "it has outlived its lease", func() bool {
				return l.TrustedUntil().Sub(first) >= 6*time.Second || l.Context().Err() != nil || !next.Waits()
			})
			redistest.Await(t, "the first server has it, or has granted it again", func() bool { return f.holder(0) == l.Token() })
			expect.Equal(t, "why the lease has ended", context.Cause(l.Context()), nil)
			expect.Equal(t, "granted before the end of the lease", next.Waits(), true)
			expect.ErrorIs(t, l.Unlock(t.Context()), nil)
			after := next.Got()
			expect.Equal(t, "the fence grows", after.Fence() > l.Fence(), true)
			expect.ErrorIs(t, after.Unlock(t.Context()), nil)
		})
	}
}

// Somebody else had the lock on the third server when the two others granted it. So the second majority has only the server whose clock is
// wrong in common with the first: it forgets the lock, but fences grow, and the first holder notices with its next renewal.
func TestAQuorumLeaseOfTwoServersEndsEarlyWhenTheClockOfOneLeaps(t *testing.T) {
	t.Parallel()
	f := newThree(t, Config{TTL: 6 * time.Second})
	taken := f.takeThird()
	l := must(t)(f.a.Lock(patient(t), "k"))
	next := f.ask()
	f.leap(time.Hour)
	expect.ErrorIs(t, taken.Unlock(t.Context()), nil) // not before, as the holder would take that one, too
	after := next.Got()
	t.Logf("the first holder's context lives: %v", l.Context().Err() == nil)
	expect.Equal(t, "the fence grows", after.Fence() > l.Fence(), true)
	cause(t, l, ErrLeaseLost)
	expect.ErrorIs(t, l.Unlock(t.Context()), ErrLeaseLost)
	expect.Equal(t, "why the second lease has ended", context.Cause(after.Context()), nil)
	expect.ErrorIs(t, after.Unlock(t.Context()), nil)
}

// As above, the lease begins on two servers. It is on the third when that is free, so that it can lose one of the two.
func TestAQuorumLeaseOfTwoServersIsTakenToTheThirdAndLivesOnWithoutTheFirst(t *testing.T) {
	t.Parallel()
	f := newThree(t, Config{TTL: 6 * time.Second})
	taken := f.takeThird()
	l := must(t)(f.a.Lock(patient(t), "k"))
	expect.Equal(t, "an Extend while the third is another's", l.Extend(t.Context()), nil)
	expect.Equal(t, "who has the third", f.holder(2), taken.Token())
	expect.ErrorIs(t, taken.Unlock(t.Context()), nil)
	redistest.Await(t, "the third server has granted it", func() bool { return f.holder(2) == l.Token() })
	f.servers[0].Kill()
	next := f.ask()
	first := l.TrustedUntil()
	redistest.Await(t, "it has outlived its lease", func() bool {
		return l.TrustedUntil().Sub(first) >= 6*time.Second || l.Context().Err() != nil || !next.Waits()
	})
	expect.Equal(t, "why the lease has ended", context.Cause(l.Context()), nil)
	expect.Equal(t, "granted before the end of the lease", next.Waits(), true)
	expect.ErrorIs(t, l.Unlock(t.Context()), nil)
	after := next.Got()
	expect.Equal(t, "the fence grows", after.Fence() > l.Fence(), true)
	expect.ErrorIs(t, after.Unlock(t.Context()), nil)
}

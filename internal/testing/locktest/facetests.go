package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func nils[K OnRedis[L], L Held](s *stage[K, L]) {
	var k K
	var l L
	_, locked := k.Lock(s.Context(), "x")
	_, tried := k.TryLock(s.Context(), "x")
	for _, err := range []error{locked, tried, k.Do(s.Context(), "x", func(context.Context, L) error { return nil })} {
		expect.ErrorIs(s, err, lifecycle.ErrNilLocker)
	}
	expect.ErrorIs(s, k.Close())
	for _, err := range []error{l.Extend(s.Context()), l.Unlock(s.Context()), context.Cause(l.Context())} {
		expect.ErrorIs(s, err, lifecycle.ErrNilLease)
	}
	expect.Equal(s, "a nil Lease has nothing", l.Token() == "" && l.TrustedUntil().IsZero(), true)
}

func outOfRange[K OnRedis[L], L Held](s *stage[K, L]) {
	_, err := s.face.Open((*redis.Client)(nil), config.Lock{
		Prefix: "{", Instance: "a b", TTL: time.Millisecond, MaxHold: time.Microsecond, RedisTimeout: -1,
	})
	for _, field := range []string{"rdb", "Config.Prefix", "Config.Instance", "Config.TTL", "Config.MaxHold", "Config.RedisTimeout"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			s.Errorf("%v does not name %s", err, field)
		}
	}
	k := s.open(config.Lock{})
	for name, want := range map[string]string{"": "name is empty", strings.Repeat("x", 65_537): "65537 bytes, more than 65536"} {
		if _, err := k.TryLock(s.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			s.Errorf("%v does not say: %s", err, want)
		}
	}
	s.unlock(s.lock(k, strings.Repeat("x", 65_536)))
}

func nothingToDo[K OnRedis[L], L Held](s *stage[K, L]) {
	k := s.open(config.Lock{})
	l := s.lock(k, "x")
	if err := k.Do(s.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), "f is nil") {
		s.Error(err)
	}
	s.unlock(l)
}

func endedContext[K OnRedis[L], L Held](s *stage[K, L]) {
	k, why := s.open(config.Lock{}), errors.New("enough")
	ctx, cancel := context.WithCancelCause(s.Context())
	cancel(why)
	for _, lock := range []func(context.Context, string) (L, error){k.Lock, k.TryLock} {
		_, err := lock(ctx, "x")
		expect.ErrorIs(s, err, context.Canceled, why)
		expect.Equal(s, "others have it, as nobody said", errors.Is(err, lifecycle.ErrNotAcquired), false)
	}
	l, err := k.TryLock(s.Context(), "x")
	expect.ErrorIs(s, err)
	s.unlock(l)
}

func hooks[K OnRedis[L], L Held](s *stage[K, L]) {
	var heard []string
	k := s.open(config.Lock{Hooks: config.Hooks{
		Begin: func(_ context.Context, call, name string) func(error) {
			heard = append(heard, call+" "+name)
			return func(err error) { heard = append(heard, fmt.Sprint("end ", err == nil)) }
		},
		OnLock: func(name string, _ time.Duration, err error) {
			heard = append(heard, fmt.Sprint("locked ", name, " ", err == nil))
		},
		OnUnlock: func(name string, _ time.Duration, err error) {
			heard = append(heard, fmt.Sprint("unlocked ", name, " ", err == nil))
		},
	}})
	err := k.Do(s.Context(), "x", func(ctx context.Context, l L) error {
		_, err := k.TryLock(ctx, "x")
		expect.ErrorIs(s, err, lifecycle.ErrNotAcquired)
		expect.ErrorIs(s, l.Unlock(ctx))
		return nil
	})
	expect.ErrorIs(s, err)
	want := []string{"Lock x", "end true", "locked x true", "TryLock x", "end false", "locked x false", "unlocked x true"}
	if !slices.Equal(heard, want) {
		s.Errorf("%q, want %q", heard, want)
	}
}

func instances[K OnRedis[L], L Held](s *stage[K, L]) {
	for want, cfg := range map[string]config.Lock{"shop-1": {Instance: "shop-1"}, config.DefaultInstance(): {}} {
		k := s.open(cfg)
		l := s.lock(k, "x")
		expect.Equal(s, "instance", keys.InstanceOf(l.Token()), want)
		seen := s.seen(k).Held()
		expect.Equal(s, "held", len(seen) == 1 && seen[0].Name == "x" && seen[0].Token == l.Token(), true)
		s.unlock(l)
	}
}

func renewals[K OnRedis[L], L Held](s *stage[K, L]) {
	l := s.lock(s.open(config.Lock{TTL: redistest.Brisk}), "x")
	began := l.TrustedUntil()
	await(s, "it was renewed more than once", func() bool {
		return l.TrustedUntil().After(began.Add(redistest.Brisk/2)) || l.Context().Err() != nil
	})
	_ = l.Unlock(s.Context()) // a machine that stands still may have lost it
}

func fixedLease[K OnRedis[L], L Held](s *stage[K, L]) {
	k := s.open(config.Lock{TTL: redistest.Brisk, FixedLease: true})
	l := s.lock(k, "x")
	first := l.TrustedUntil()
	await(s, "some time", func() bool { return time.Now().After(first.Add(-redistest.Brisk * 9 / 10)) })
	if err := l.Extend(s.Context()); err != nil || !l.TrustedUntil().After(first) {
		s.Errorf("not extended: %v", err)
	}
	w := s.behind(k, s.open(config.Lock{}))
	expect.ErrorIs(s, s.lost(l), lifecycle.ErrLeaseLost)
	expect.ErrorIs(s, l.Extend(s.Context()), lifecycle.ErrLeaseLost)
	next := w.Got()
	expect.ErrorIs(s, l.Unlock(s.Context()), lifecycle.ErrLeaseLost)
	s.unlock(next)
}

func maxHold[K OnRedis[L], L Held](s *stage[K, L]) {
	l := s.lock(s.open(config.Lock{TTL: redistest.Brisk, MaxHold: 3 * redistest.Brisk / 2}), "x")
	w := Wait(s, context.Background(), s.open(config.Lock{}).Lock, "x")
	expect.ErrorIs(s, s.lost(l), lifecycle.ErrLeaseLost)
	s.unlock(w.Got())
}

func notKept[K OnRedis[L], L Held](s *stage[K, L]) {
	k := s.open(config.Lock{TTL: redistest.Brisk, FixedLease: true})
	_ = s.lost(s.lock(k, "x")) // why is clear
	await(s, "it is forgotten", func() bool { return len(s.seen(k).Held()) == 0 })
}

func closes[K OnRedis[L], L Held](s *stage[K, L]) {
	k, other := s.open(config.Lock{}), s.open(config.Lock{})
	l := s.lock(k, "y")
	held := s.lock(other, "x")
	w := s.behind(other, k)
	for range 2 {
		expect.ErrorIs(s, k.Close())
	}
	expect.ErrorIs(s, w.Err(), lifecycle.ErrLockClosed)
	expect.ErrorIs(s, context.Cause(l.Context()), lifecycle.ErrLockClosed)
	for what, err := range map[string]error{
		"Extend": l.Extend(s.Context()), "Unlock": l.Unlock(s.Context()), "Do": k.Do(s.Context(), "y", func(context.Context, L) error { return nil }),
	} {
		if !errors.Is(err, lifecycle.ErrLockClosed) {
			s.Errorf("%s: %v", what, err)
		}
	}
	s.await(other, 0)
	s.unlock(s.lock(other, "y"))
	s.unlock(held)
}

// closeRace has the holders, not Close, give up lost leases. They may do so when nobody waits for anything any more.
func closeRace[K OnRedis[L], L Held](s *stage[K, L]) {
	for round := range 5 {
		k := s.open(config.Lock{})
		var leases []L
		for i := range 40 {
			leases = append(leases, s.lock(k, fmt.Sprint("k", round, i)))
		}
		for _, l := range leases {
			s.face.Lose(l, lifecycle.ErrLeaseLost)
		}
		var all sync.WaitGroup
		for _, l := range leases {
			all.Go(func() { // owner: the test; ends with Unlock; joined below
				if err := l.Unlock(context.Background()); err != nil && !errors.Is(err, lifecycle.ErrLeaseLost) {
					s.Error(err)
				}
			})
		}
		all.Go(func() { _ = k.Close() }) // owner: the test; ends with Close; joined below
		all.Wait()
	}
}

func closedAfter[K OnRedis[L], L Held](s *stage[K, L]) {
	k := s.open(config.Lock{})
	l := s.lock(k, "x")
	s.face.Lose(l, lifecycle.ErrRevoked)
	_ = k.Close() // always nil
	expect.ErrorIs(s, l.Unlock(s.Context()), lifecycle.ErrRevoked)
}

func cutFromRedis[K OnRedis[L], L Held](s *stage[K, L]) {
	p := redistest.StartProxy(s, s.face.Server.Addr())
	k := s.on(p.Client(s), config.Lock{TTL: 3 * time.Second, RedisTimeout: redistest.Brisk}) // longer than a busy machine stands still for
	other := s.open(config.Lock{})
	l := s.lock(k, "x")
	w := s.behind(other, other)
	p.BlackHole(true)
	expect.ErrorIs(s, s.lost(l), lifecycle.ErrLeaseLost)
	if time.Now().Before(l.TrustedUntil()) {
		s.Error("it ended while it was trusted")
	}
	next := w.Got()
	p.BlackHole(false)
	p.Cut()
	expect.ErrorIs(s, l.Unlock(s.Context()), lifecycle.ErrLeaseLost)
	s.unlock(next) // which it has not taken away
}

// lostUnderDo cuts a holder off from Redis, so that it cannot unlock either, until its lease is lost, or only for its unlock; or its
// caller ends its context. Only the first has lost the lease while it had it, whatever f returns.
func lostUnderDo[K OnRedis[L], L Held](s *stage[K, L]) {
	why := errors.New("enough")
	for _, c := range []struct {
		what string
		lost bool
		ttl  time.Duration
		end  func(cut func(), leave context.CancelCauseFunc)
	}{
		{"lost", true, 3 * time.Second, func(cut func(), _ context.CancelCauseFunc) { cut() }},
		{"cancelled by its caller", false, redistest.Patience, func(_ func(), leave context.CancelCauseFunc) { leave(why) }},
		{"cancelled by its caller and then cut off", false, redistest.Patience, func(cut func(), leave context.CancelCauseFunc) { cut(); leave(why) }},
	} {
		for what, returned := range map[string]func(context.Context) error{
			"nothing": func(context.Context) error { return nil }, "the context's error": context.Context.Err,
		} {
			s.Run(c.what+", returning "+what, func(t *testing.T) {
				t.Parallel()
				p := redistest.StartProxy(t, s.face.Server.Addr())
				on := &stage[K, L]{t, s.face, s.prefix}
				k := on.on(p.Client(t), config.Lock{TTL: c.ttl, RedisTimeout: redistest.Brisk})
				ctx, leave := context.WithCancelCause(t.Context())
				err := k.Do(ctx, rand.Text(), func(ctx context.Context, _ L) error {
					c.end(func() { p.BlackHole(true) }, leave)
					<-ctx.Done()
					return returned(ctx)
				})
				if errors.Is(err, lifecycle.ErrLeaseLost) != c.lost {
					t.Errorf("%v", err)
				}
				leave(nil)
				p.BlackHole(false)
				p.Cut()
			})
		}
	}
}

// overdue has a lease that is lost by its holder's clock, and stands in Redis.
func overdue[K OnRedis[L], L Held](s *stage[K, L]) {
	for _, cause := range []error{lifecycle.ErrLeaseLost, lifecycle.ErrRevoked} {
		err := s.open(config.Lock{}).Do(s.Context(), "x", func(ctx context.Context, l L) error {
			s.face.Lose(l, cause)
			<-ctx.Done()
			return nil
		})
		expect.ErrorIs(s, err, cause)
	}
}

func hangs[K OnRedis[L], L Held](s *stage[K, L]) {
	p := redistest.StartProxy(s, s.face.Server.Addr())
	k := s.on(p.Client(s), config.Lock{RedisTimeout: redistest.Brisk})
	l := s.lock(k, "x")
	p.BlackHole(true)
	_, tried := k.TryLock(s.Context(), "y")
	for what, err := range map[string]error{
		"Extend": l.Extend(s.Context()), "Unlock": l.Unlock(s.Context()), "TryLock": tried,
		"Do": k.Do(s.Context(), "y", func(context.Context, L) error { return nil }),
	} {
		if err == nil || errors.Is(err, lifecycle.ErrNotAcquired) || errors.Is(err, lifecycle.ErrLeaseLost) {
			s.Errorf("%s: %v", what, err)
		}
	}
	p.BlackHole(false)
	p.Cut()
}

func outOfMemory[K OnRedis[L], L Held](s *stage[K, L]) {
	if s.face.Polls {
		s.Skip("nothing is handed on")
	}
	server := redistest.Start(s)
	k, other := s.on(server.Client(s), config.Lock{}), s.on(server.Client(s), config.Lock{})
	l := s.lock(k, "x")
	w := s.behind(k, other)
	expect.ErrorIs(s, server.Client(s).ConfigSet(s.Context(), "maxmemory", "1").Err())
	s.unlock(l)
	next := w.Got()
	if _, err := k.TryLock(s.Context(), "y"); err == nil || errors.Is(err, lifecycle.ErrNotAcquired) {
		s.Errorf("TryLock: %v", err)
	}
	s.unlock(next)
}

func forgets[K OnRedis[L], L Held](s *stage[K, L]) {
	server := redistest.Start(s)
	k, other := s.on(server.Client(s), config.Lock{TTL: 5 * redistest.Brisk}), s.on(server.Client(s), config.Lock{TTL: 5 * redistest.Brisk})
	l := s.lock(k, "x")
	w := s.behind(k, other)
	server.Restart() // without its data: the lock is free
	expect.ErrorIs(s, s.lost(l), lifecycle.ErrLeaseLost)
	if w.Err() != nil { // it could not ask for longer than TTL
		w = Wait(s, context.Background(), other.Lock, "x")
	}
	_ = w.Got().Unlock(s.Context()) // a machine that stands still may have lost it
}

func flushed[K OnRedis[L], L Held](s *stage[K, L]) {
	cfg := config.Lock{TTL: redistest.Brisk}
	k, other := s.open(cfg), s.open(cfg)
	l := s.lock(k, "x")
	w := s.behind(k, other)
	flush := redis.NewScript("return redis.call('DEL', unpack(redis.call('KEYS', ARGV[1] .. '*')))") // of what is this test's
	expect.ErrorIs(s, flush.Run(s.Context(), s.face.Server.Client(s), nil, s.prefix).Err())
	expect.ErrorIs(s, s.lost(l), lifecycle.ErrLeaseLost)
	_ = w.Got().Unlock(s.Context()) // as above
}

func noPush[K OnRedis[L], L Held](s *stage[K, L]) {
	mute := s.face.Server.As(s, "~*", "&*", "+@all", "-subscribe")
	k, other := s.on(s.face.Server.Client(s, mute), config.Lock{}), s.on(s.face.Server.Client(s, mute), config.Lock{})
	l := s.lock(k, "x")
	w := s.behind(k, other)
	s.unlock(l)
	s.unlock(w.Got())
}

// noPublish hears the message that tells the waiter: the process that unlocks must have sent it, as no script can.
func noPublish[K OnRedis[L], L Held](s *stage[K, L]) {
	if s.face.Polls {
		s.Skip("nobody is told")
	}
	rdb := func() *redis.Client { return redistest.WithoutPublish(s.face.Server.Client(s)) }
	k, other := s.on(rdb(), config.Lock{TTL: time.Hour}), s.on(rdb(), config.Lock{TTL: time.Hour})
	heard := s.face.Server.Client(s).PSubscribe(s.Context(), s.prefix+keys.Inboxes+"*")
	s.Cleanup(func() { _ = heard.Close() })
	if _, err := heard.Receive(s.Context()); err != nil {
		s.Fatal(err)
	}
	l := s.lock(k, "x")
	w := s.behind(k, other)
	await(s, "the waiter is registered", s.registered)
	s.unlock(l)
	end := patient(s)
	for told := false; !told; {
		got, err := heard.ReceiveTimeout(s.Context(), redistest.Patience)
		if err = errors.Join(err, end.Err()); err != nil { // probes come all the time
			s.Fatal("nobody told the waiter: ", err)
		}
		m, is := got.(*redis.Message)
		told = is && !strings.HasPrefix(m.Payload, wake.Frame("", "")) // that is a probe
	}
	s.unlock(w.Got())
}

// registered reports whether an inbox is among what Redis has of the locks.
func (s *stage[K, L]) registered() bool {
	rdb := s.face.Server.Client(s)
	for _, key := range rdb.Keys(s.Context(), s.prefix+"*").Val() {
		all := append(rdb.HVals(s.Context(), key).Val(), rdb.ZRange(s.Context(), key, 0, -1).Val()...)
		if slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, keys.Inboxes) }) {
			return true
		}
	}
	return false
}

package cacheguard

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// unreplacing is a guard with a thing that was asked for.
type unreplacing struct {
	*fleet
	*Cache[int, string]
	proxy *redistest.Proxy
}

// aCause is why a thing is removed, and not replaced.
type aCause struct {
	cfg  func(*Config)
	load func() (string, error)                   // but for the first time
	does func(t *testing.T, u *unreplacing) error // makes it so, and invalidates
	says string                                   // the log

	design bool   // it is no trouble
	beside string // the line of the trouble that it is due to; empty: it has its own
}

func (u *unreplacing) invalidates(t *testing.T) error { return u.Invalidate(t.Context(), 1) }

func (u *unreplacing) updates(ctx context.Context, err error) error {
	err = errors.Join(u.Update(ctx, 1, func(context.Context) error { return err }), err)
	if errors.Is(err, errBroken) {
		return nil
	}
	return err
}

var causes = map[string]aCause{
	"Redis is slow": {beside: "redis is slow", does: func(t *testing.T, u *unreplacing) error {
		u.slow(t)
		return u.invalidates(t)
	}},
	"Redis is slow, before an Update": {beside: "redis is slow", does: func(t *testing.T, u *unreplacing) error {
		u.slow(t)
		return u.updates(t.Context(), nil)
	}},
	"Bypass": {design: true, says: "bypass", does: func(t *testing.T, u *unreplacing) error {
		u.guard.Bypass(true)
		return u.invalidates(t)
	}},
	"a transaction": {design: true, says: errOfTransaction.Error(), does: func(t *testing.T, u *unreplacing) error {
		in := mustIntend(t, u.guard, Changes{Keys: []string{"another"}})
		defer mustDone(t, in)
		return u.Invalidate(in.Context(t.Context()), 1)
	}},
	"a call whose context has ended": {says: "gone", does: func(t *testing.T, u *unreplacing) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("gone"))
		return u.Invalidate(ctx, 1)
	}},
	"no announcement": {says: "could not be announced", does: func(t *testing.T, u *unreplacing) error {
		defer u.proxy.On(scriptOf("intend"), redistest.ReplyError("OOM command not allowed")).Remove()
		u.events.quiet = true
		return u.invalidates(t)
	}},
	"an intent that is over": {
		says: "UpdateTimeout", cfg: func(cfg *Config) { cfg.LeaseTTL, cfg.UpdateTimeout = brisk, brisk }, does: func(t *testing.T, u *unreplacing) error {
			_, _ = u.guard.Intend(t.Context(), u.Changes(1)) // may be over before it returns, and is never done
			redistest.Await(t, "it is over", func() bool { return !u.exists(u.guard.keys.ValueKey(u.Key(1))) })
			return nil
		},
	},
	"a write that fails": {says: errBroken.Error(), does: func(t *testing.T, u *unreplacing) error { return u.updates(t.Context(), errBroken) }},
	"an Update whose context ends": {says: "left", does: func(t *testing.T, u *unreplacing) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := u.Update(ctx, 1, func(context.Context) error {
			cancel(errBroken)
			return errors.New("left")
		})
		expect.Equal(t, "an error", err != nil, true)
		return nil
	}},
	"a load that fails": {says: errBroken.Error(), load: func() (string, error) { return "", errBroken }, does: func(t *testing.T, u *unreplacing) error {
		return u.invalidates(t)
	}},
	"a load that fails after an Update": {says: errBroken.Error(), load: func() (string, error) { return "", errBroken }, does: func(t *testing.T, u *unreplacing) error {
		return u.updates(t.Context(), nil)
	}},
	"a value that is gone": {design: true, says: errNotKept.Error(), cfg: func(cfg *Config) { cfg.NegativeTTL = off }, load: func() (string, error) { return "", ErrNotFound }, does: func(t *testing.T, u *unreplacing) error {
		return u.invalidates(t)
	}},
	"another write": {design: true, says: errOvertaken.Error(), does: func(t *testing.T, u *unreplacing) error {
		held := u.proxy.On(scriptOf("replace"), redistest.Hold).Times(1)
		done := make(chan error, 1)
		go func() { done <- u.Invalidate(context.Background(), 1) }() // owner: the test; ends with the request; joined by receiving
		<-held.Hit()
		value := u.guard.keys.ValueKey(u.Key(1))
		expect.Equal(t, "what another write removes", u.redis.Del(t.Context(), value, protocol.LeaseKey(value)).Val(), 2)
		held.Release()
		return <-done
	}},
	"an UpdateMany in a transaction": {design: true, says: errOfTransaction.Error(), does: func(t *testing.T, u *unreplacing) error {
		in := mustIntend(t, u.guard, Changes{Keys: []string{"another"}})
		defer mustDone(t, in)
		return u.guard.UpdateMany(in.Context(t.Context()), []string{u.Key(1), "more"}, func(context.Context) error { return nil })
	}},
	"too many keys that wait": {says: errTooManyWait.Error(), does: func(t *testing.T, u *unreplacing) error {
		of, _ := u.guard.replaceable(t.Context(), u.Key(1), 0)
		u.guard.reloads.running = true // it is busy
		for i := range mostReloads {
			u.guard.reloads.add(strings.Repeat("k", 1+i), of)
		}
		u.guard.reload(t.Context(), u.Key(1))
		return u.guard.writes.InvalidateOnce(t.Context(), []string{u.Key(1)}, nil)
	}},
}

// slow has Redis take longer than loads do.
func (u *unreplacing) slow(t *testing.T) {
	part := u.guard.breakers.Breaker(0)
	redistest.Await(t, "slow", func() bool {
		takes(part, time.Minute)
		return u.guard.Stats().SlowParts == 1
	})
}

func TestWhatIsRemovedInsteadOfReplacedIsCountedAndLogged(t *testing.T) {
	t.Parallel()
	for name, cause := range causes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, log := logged()
			cfg.HedgeAfter = time.Hour
			if cause.cfg != nil {
				cause.cfg(&cfg)
			}
			proxy := redistest.StartProxy(t, shared.Addr())
			f := newFleetOn(t, shared.Client(t), cfg, proxy.Client(t))
			load := func() (string, error) { return "v", nil }
			c := newCaches(t, f, CacheConfig[int, string]{
				Name: "hot", Replace: time.Hour, Load: func(context.Context, int) (string, error) { return load() },
			})[0]
			f.wantOf(c, 1, "v", nil)
			f.stored()
			if cause.load != nil {
				load = cause.load
			}
			expect.Equal(t, "the write", cause.does(t, &unreplacing{f, c, proxy}), nil)
			removed(t, c, f)
			if cause.beside != "" {
				expect.Equal(t, "the line of its trouble", len(lines(log(), cause.beside)), 1)
				expect.Equal(t, "lines of its own", len(lines(log(), "key was")), 0)
				return
			}
			level := "level=WARN"
			if cause.design {
				level = "level=INFO"
			}
			if line := strings.Join(lines(log(), "key was removed"), ""); !strings.Contains(line, cause.says) || !strings.Contains(line, level) {
				t.Errorf("%q is not the reason at %s: %s", cause.says, level, log())
			}
		})
	}
}

// Nothing was removed: the invalidation is pending, which is logged.
func TestAKeyThatADeadRedisKeepsIsNotSaidToBeRemoved(t *testing.T) {
	t.Parallel()
	cfg, log := logged()
	cfg.RedisTimeout, cfg.HedgeAfter = brisk, off
	proxy := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), cfg, proxy.Client(t))
	f.events.quiet = true
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Hour, Load: func(context.Context, int) (string, error) { return "v", nil },
	})[0]
	f.wantOf(c, 1, "v", nil)
	f.stored()
	rule := proxy.On(func([]string) bool { return true }, redistest.Hold)
	defer rule.Remove()
	for range 3 {
		expect.Equal(t, "it fails", c.Invalidate(t.Context(), 1) != nil, true)
	}
	expect.Equal(t, "lines", len(lines(log(), "key was")), 0)
	expect.Equal(t, "of what is pending", len(lines(log(), "invalidations pending")), 1)
	expect.Equal(t, "counted", c.guard.Stats().NotReplaced > 0, true)
}

// It was removed here, or by another process.
func TestAKeyThatCouldNotBeLoadedInTheBackgroundIsNamed(t *testing.T) {
	t.Parallel()
	cfg, log := logged()
	f := newFleet(t, standalone(t), 1, cfg)
	load := func() (string, error) { return "v", nil }
	c := newCaches(t, f, CacheConfig[int, string]{Name: "hot", Replace: time.Hour, Load: func(context.Context, int) (string, error) { return load() }})[0]
	f.wantOf(c, 1, "v", nil)
	f.stored()
	load = func() (string, error) { return "", errBroken }
	expect.Equal(t, "it is removed", f.guards[0].writes.InvalidateOnce(t.Context(), []string{c.Key(1)}, nil), nil)
	f.guards[0].reload(t.Context(), c.Key(1))
	redistest.Await(t, "a line", func() bool { return len(lines(log(), "could not be replaced")) == 1 })
	expectIn(t, lines(log(), "could not be replaced")[0], " key="+c.Key(1)+" ")
}

// A service in which that happens with each write is healthy.
func TestWhatIsRemovedByDesignIsLoggedOnceForACacheAndAReasonAndCountedAlways(t *testing.T) {
	t.Parallel()
	cfg, log := logged()
	f := newFleet(t, standalone(t), 1, cfg)
	load := func(context.Context, int) (string, error) { return "v", nil }
	c := newCaches(t, f, CacheConfig[int, string]{Name: "product", Replace: time.Hour, Load: load})[0]
	view := newCaches(t, f, CacheConfig[int, string]{Name: "view", Replace: time.Hour, Load: load})[0]
	for range 3 {
		f.wantOf(c, 1, "v", nil)
		f.wantOf(view, 1, "v", nil)
		f.stored()
		expect.Equal(t, "invalidation", f.guards[0].Invalidate(t.Context(), c.Key(1), view.Key(1)), nil)
	}
	expect.Equal(t, "not replaced", f.guards[0].Stats().NotReplaced, uint64(3))
	expect.Equal(t, "lines", len(lines(log(), "key was removed")), 1)
	expect.Equal(t, "of them no warning", len(lines(log(), `level=INFO msg="cacheguard: key was removed`)), 1)
}

// Where nothing is in the way, nothing is counted: a key that nobody asks for, an Update that was not made, a write of several keys.
func TestWhatIsNotToBeReplacedIsNotCounted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Hour, Load: func(context.Context, int) (string, error) { return "v", nil },
	})[0]
	f.wantOf(c, 1, "v", nil)
	f.stored()
	expect.Equal(t, "Invalidate", c.Invalidate(t.Context(), 2), nil)
	c.guard.Bypass(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.ErrorIs(t, c.Update(ctx, 1, func(context.Context) error { return nil }), context.Canceled)
	c.guard.Bypass(false)
	expect.Equal(t, "UpdateMany", c.guard.UpdateMany(t.Context(), []string{c.Key(1), c.Key(2)}, func(context.Context) error { return nil }), nil)
	redistest.Await(t, "it is loaded", func() bool { return f.exists(c.guard.keys.ValueKey(c.Key(1))) })
	expect.Equal(t, "not replaced", c.guard.Stats().NotReplaced, uint64(0))
}

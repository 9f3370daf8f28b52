package cacheguardtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// outcomes makes a Config record the outcome of each Get.
func outcomes(cfg cacheguard.Config) (cacheguard.Config, <-chan cacheguard.Outcome) {
	all := make(chan cacheguard.Outcome, 1000)
	cfg.Observers = []cacheguard.Observer{cacheguard.On(cacheguard.EventGet, func(_ context.Context, e cacheguard.Event) { all <- e.Outcome })}
	return cfg, all
}

func returns(value string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, nil }
}

// want fails the test unless the Get of the key returns the value.
func want(t *testing.T, env *cacheguardtest.Env, key, loaded, value string) {
	t.Helper()
	got, err := cacheguard.Get(t.Context(), env.Guard, key, returns(loaded))
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "value", got, value)
}

func TestAValueIsLoadedOnceUntilItsTTLIsOver(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{TTL: time.Hour})
	want(t, env, "k", "old", "old")
	env.Advance(time.Hour - time.Millisecond)
	want(t, env, "k", "new", "old")
	expect.Equal(t, "loads", env.Loads("k"), 1)
	env.Advance(time.Millisecond)
	want(t, env, "k", "new", "new")
	expect.Equal(t, "loads", env.Loads("k"), 2)
	expect.Equal(t, "loads of another key", env.Loads("other"), 0)
}

func TestAStaleValueIsServedAndReplacedInTheBackground(t *testing.T) {
	t.Parallel()
	cfg, how := outcomes(cacheguard.Config{TTL: time.Minute, StaleFor: time.Hour})
	env := cacheguardtest.New(t, cfg)
	want(t, env, "k", "old", "old")
	expect.Equal(t, "outcome", <-how, cacheguard.Loaded)
	env.Advance(time.Minute)
	want(t, env, "k", "new", "old")
	expect.Equal(t, "outcome", <-how, cacheguard.Stale)
	env.Settle()
	expect.Equal(t, "loads", env.Loads("k"), 2)
	want(t, env, "k", "newer", "new")
	expect.Equal(t, "outcome", <-how, cacheguard.Hit)
	env.Advance(time.Minute + time.Hour)
	want(t, env, "k", "newer", "newer")
	expect.Equal(t, "outcome", <-how, cacheguard.Loaded)
}

func TestAbsenceIsRememberedForNegativeTTL(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{NegativeTTL: 5 * time.Second})
	absent := func(context.Context) (string, error) { return "", cacheguard.ErrNotFound }
	for _, pause := range []time.Duration{0, 5*time.Second - time.Millisecond} {
		env.Advance(pause)
		_, err := cacheguard.Get(t.Context(), env.Guard, "k", absent)
		expect.ErrorIs(t, err, cacheguard.ErrNotFound)
		expect.Equal(t, "loads", env.Loads("k"), 1)
	}
	env.Advance(time.Millisecond)
	want(t, env, "k", "v", "v")
	expect.Equal(t, "loads", env.Loads("k"), 2)
}

func TestAFailureIsRememberedUntilTheClockMoves(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	broken := errors.New("broken")
	_, err := cacheguard.Get(t.Context(), env.Guard, "k", func(context.Context) (string, error) { return "", broken })
	expect.ErrorIs(t, err, broken)
	env.Settle()
	_, err = cacheguard.Get(t.Context(), env.Guard, "k", returns("v"))
	expect.ErrorIs(t, err, broken)
	expect.Equal(t, "loads", env.Loads("k"), 1)
	env.Advance(time.Second)
	want(t, env, "k", "v", "v")
	expect.Equal(t, "loads", env.Loads("k"), 2)
}

func TestAValueIsReplacedEarlyByHowLongItsLoadTook(t *testing.T) {
	t.Parallel()
	cfg, how := outcomes(cacheguard.Config{TTL: time.Hour, EarlyRefresh: 100, LeaseTTL: 600 * time.Hour})
	env := cacheguardtest.New(t, cfg)
	_, err := cacheguard.Get(t.Context(), env.Guard, "slow", func(context.Context) (string, error) {
		env.Advance(300 * time.Hour) // so long that the dice, which are thrown by it, cannot fall otherwise
		return "old", nil
	})
	expect.ErrorIs(t, err, nil)
	<-how
	env.Advance(time.Hour - time.Second)
	want(t, env, "slow", "new", "old")
	expect.Equal(t, "outcome", <-how, cacheguard.Hit)
	env.Settle()
	expect.Equal(t, "loads", env.Loads("slow"), 2)

	want(t, env, "quick", "old", "old")
	env.Advance(time.Hour - time.Millisecond)
	want(t, env, "quick", "new", "old")
	env.Settle()
	expect.Equal(t, "loads", env.Loads("quick"), 1)
}

func TestTheLocalTierGrowsOldByTheClock(t *testing.T) {
	t.Parallel()
	cfg, how := outcomes(cacheguard.Config{TTL: time.Hour, Local: cacheguard.LocalConfig{MaxEntries: 10, TTL: time.Minute}})
	env := cacheguardtest.New(t, cfg)
	want(t, env, "k", "v", "v")
	env.Settle()
	want(t, env, "k", "x", "v") // reads it into the tier
	want(t, env, "k", "x", "v")
	env.Advance(time.Minute)
	want(t, env, "k", "x", "v")
	for _, outcome := range []cacheguard.Outcome{cacheguard.Loaded, cacheguard.Hit, cacheguard.Local, cacheguard.Hit} {
		expect.Equal(t, "outcome", <-how, outcome)
	}
}

func TestALeaseIsKeptWhileTheClockMoves(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{TTL: time.Hour})
	began, release := make(chan struct{}), make(chan struct{})
	got := make(chan error, 1)
	go func() {
		_, err := cacheguard.Get(context.Background(), env.Guard, "k", func(context.Context) (string, error) {
			close(began)
			<-release
			return "v", nil
		})
		got <- err
	}()
	<-began
	env.Advance(2 * time.Hour)
	close(release)
	expect.ErrorIs(t, <-got, nil)
	env.Settle()
	want(t, env, "k", "another", "v")
	expect.Equal(t, "loads", env.Loads("k"), 1)
}

func TestAnUpdateHoldsItsLockWhileTheClockMoves(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	for range 3 {
		err := env.Guard.Update(t.Context(), "k", func(ctx context.Context) error {
			env.Advance(30 * time.Minute)
			return ctx.Err()
		})
		expect.ErrorIs(t, err, nil)
	}
}

func TestTagsAndAllAreInvalidatedAtOnce(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{TTL: time.Hour})
	other, err := cacheguard.New(env.Redis, cacheguard.Config{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	wantBoth := func(loaded, value string) {
		t.Helper()
		for _, g := range []*cacheguard.Guard{env.Guard, other} {
			got, err := cacheguard.Get(t.Context(), g, "k", func(ctx context.Context) (string, error) {
				cacheguard.SetTags(ctx, "t")
				return loaded, nil
			})
			expect.ErrorIs(t, err, nil)
			expect.Equal(t, "value", got, value)
			env.Settle()
		}
	}
	wantBoth("one", "one") // stored at the latest by the second load, which knows the tag
	wantBoth("one", "one")
	expect.ErrorIs(t, env.Guard.InvalidateTags(t.Context(), "t"), nil)
	wantBoth("two", "two")
	env.Advance(time.Minute)
	wantBoth("three", "two")
	expect.ErrorIs(t, other.InvalidateAll(t.Context()), nil)
	wantBoth("four", "four")
}

func TestAnOutageIsOverForAllWhenItEnds(t *testing.T) {
	t.Parallel()
	cfg, how := outcomes(cacheguard.Config{TTL: time.Hour})
	env := cacheguardtest.New(t, cfg)
	want(t, env, "k", "v", "v")
	expect.Equal(t, "outcome", <-how, cacheguard.Loaded)
	env.Settle()
	env.Outage(true)
	for range 10 {
		want(t, env, "k", "other", "other")
		expect.Equal(t, "outcome", <-how, cacheguard.Bypassed)
	}
	if env.Guard.Invalidate(t.Context(), "k") == nil {
		t.Error("an invalidation got through")
	}
	env.Outage(false)
	want(t, env, "k", "new", "new")
	expect.Equal(t, "outcome", <-how, cacheguard.Loaded)
	want(t, env, "k", "newer", "new")
}

func TestAnUpdateFailsAtOnceInAnOutage(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	env.Outage(true)
	err := env.Guard.Update(t.Context(), "k", func(context.Context) error { t.Error("written"); return nil })
	var redis *cacheguard.RedisError
	if !errors.As(err, &redis) || redis.Op != "update" {
		t.Errorf("error %v, want that of Redis", err)
	}
}

func TestGuardsOfTheCodeUnderTestTakePart(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{TTL: time.Minute})
	var told int
	mine, err := cacheguard.New(env.Redis, cacheguard.Config{
		Prefix: "mine", TTL: time.Hour, Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventLoad, func(context.Context, cacheguard.Event) { told++ })},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	for range 2 {
		_, err = cacheguard.Get(t.Context(), mine, "k", returns("v"))
		expect.ErrorIs(t, err, nil)
	}
	expect.Equal(t, "loads", env.Loads("k"), 1)
	env.Advance(time.Hour)
	_, err = cacheguard.Get(t.Context(), mine, "k", returns("v"))
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "loads", env.Loads("k"), 2)
	expect.Equal(t, "loads that the hook got", told, 2)
}

func TestGetManyCountsEachKey(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{TTL: time.Minute})
	load := func(_ context.Context, missing []string) (map[string]int, error) {
		found := make(map[string]int)
		for _, key := range missing {
			found[key] = len(key)
		}
		return found, nil
	}
	for range 2 {
		found, err := cacheguard.GetMany(t.Context(), env.Guard, []string{"a", "bb"}, load)
		expect.ErrorIs(t, err, nil)
		expect.Equal(t, "found", fmt.Sprint(found), "map[a:1 bb:2]")
	}
	expect.Equal(t, "loads of a", env.Loads("a"), 1)
	expect.Equal(t, "loads of bb", env.Loads("bb"), 1)
}

func TestManyEnvironmentsDoNotDisturbOneAnother(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 20 {
		env := cacheguardtest.New(t, cacheguard.Config{TTL: time.Duration(i+1) * time.Minute})
		all.Go(func() {
			for range 3 {
				want(t, env, "k", "v", "v")
				env.Advance(time.Duration(i+1)*time.Minute - time.Second)
				want(t, env, "k", "v", "v")
				env.Advance(time.Second)
			}
			expect.Equal(t, "loads", env.Loads("k"), 3)
		})
	}
	all.Wait()
}

func TestAdvanceDoesNotGoBack(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	before := env.Now()
	env.Advance(0)
	expect.Equal(t, "now", env.Now(), before)
	env.Advance(time.Hour)
	expect.Equal(t, "now", env.Now(), before.Add(time.Hour))
	server, err := env.Redis.Time(t.Context()).Result()
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "the server's clock", server.Equal(env.Now()), true)
}

// A test may have the Config of production.
func TestNewTakesEveryConfigThatCacheguardTakes(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]cacheguard.Config{
		"a short UpdateTimeout": {UpdateTimeout: 10 * time.Second}, "the shortest": {UpdateTimeout: 5 * time.Second}, "none": {UpdateTimeout: -1},
		"a long one": {UpdateTimeout: time.Hour}, "and a short LeaseTTL": {UpdateTimeout: time.Second, LeaseTTL: time.Second},
		"a long LeaseTTL": {LeaseTTL: time.Hour}, "a short WaitTimeout": {WaitTimeout: time.Millisecond}, "a short RedisTimeout": {RedisTimeout: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := cacheguardtest.New(t, cfg)
			rdb := redis.NewClient(&redis.Options{Addr: env.Redis.Options().Addr}) // none of the environment
			defer rdb.Close()
			g, err := cacheguard.New(rdb, cfg)
			if err != nil {
				t.Fatal(err)
			}
			_ = g.Close() // always nil
		})
	}
}

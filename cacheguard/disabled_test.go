package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/inprocess"
	whyoff "github.com/cacheguard/go/internal/cache/off"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

// newDisabled returns a Guard without Redis, and what its Gets did.
func newDisabled(t *testing.T, cfg Config) (*Guard, *events) {
	t.Helper()
	e := &events{outcomes: make(map[Outcome]int)}
	cfg.Disabled, cfg.Hooks = true, e.hooks(t)
	return newGuard(t, nil, cfg), e
}

// awaitSharing waits until n callers wait for a load without Redis.
func awaitSharing(t *testing.T, g *Guard, key string, n int) {
	t.Helper()
	redistest.Await(t, fmt.Sprintf("%d callers share a load", n), func() bool {
		return g.flights.Count(only(flightKey{key: key, shape: protocol.ShapeOf[string]{}, mode: direct})).Callers == n
	})
}

func TestADisabledGuardSharesALoadWithThoseWhoComeLater(t *testing.T) {
	t.Parallel()
	g, e := newDisabled(t, Config{FailClosed: true, Local: LocalConfig{MaxEntries: 1}, StaleFor: time.Hour})
	s := newSource("v")
	first := async(g, "k", s.load)
	<-s.begun
	var others []<-chan reply[string]
	for range 99 {
		others = append(others, async(g, "k", s.load))
	}
	awaitSharing(t, g, "k", 100)
	close(s.release)
	for _, got := range append(others, first) {
		want(t, got, "v")
	}
	expect.Equal(t, "loads", s.loads.Load(), 1)
	expect.Equal(t, "loads that the hook saw", e.loads.Load(), 1)
	want(t, async(g, "k", s.load), "v")
	expect.Equal(t, "loads after that", s.loads.Load(), 2)
	expect.Equal(t, "bypassed", e.count(Bypassed), 101)
	expect.Equal(t, "errors of Redis", e.redisErrors.Load(), 0)
}

func TestADisabledGuardDoesNotShareALoadThatWasOvertaken(t *testing.T) {
	t.Parallel()
	for name, overtake := range map[string]func(*Guard) error{
		"Invalidate":     func(g *Guard) error { return g.Invalidate(context.Background(), "k") },
		"InvalidateTags": func(g *Guard) error { return g.InvalidateTags(context.Background(), "t") },
		"InvalidateAll":  func(g *Guard) error { return g.InvalidateAll(context.Background()) },
		"Update": func(g *Guard) error {
			return g.Update(context.Background(), "k", func(context.Context) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, _ := newDisabled(t, Config{})
			s := newSource("old")
			before := async(g, "k", s.load)
			<-s.begun
			s.value.Store("new")
			expect.ErrorIs(t, overtake(g), nil)
			after := async(g, "k", s.load)
			awaitSharing(t, g, "k", 2)
			close(s.release)
			want(t, before, "old")
			want(t, after, "new")
			expect.Equal(t, "loads", s.loads.Load(), 2)
		})
	}
}

func TestADisabledGuardKeepsTheLimitsOfLoads(t *testing.T) {
	t.Parallel()
	g, _ := newDisabled(t, Config{MaxLoads: 2, LoadTimeout: time.Millisecond})
	_, err := Get(t.Context(), g, "slow", func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	expect.ErrorIs(t, err, context.DeadlineExceeded)

	g, _ = newDisabled(t, Config{MaxLoads: 2})
	s := newSource("v")
	var all []<-chan reply[string]
	for i := range 10 {
		all = append(all, async(g, fmt.Sprint(i), s.load))
	}
	<-s.begun
	<-s.begun
	redistest.Await(t, "all have their flights", func() bool { return g.flights.Count(nil).Running == 10 })
	expect.Equal(t, "loading", g.Stats().Loading, 2)
	close(s.release)
	for _, got := range all {
		want(t, got, "v")
	}
	expect.Equal(t, "loads", s.loads.Load(), 10)
}

func TestADisabledGuardReturnsTheErrorsOfLoads(t *testing.T) {
	t.Parallel()
	g, e := newDisabled(t, Config{})
	_, err := Get(t.Context(), g, "k", func(context.Context) (string, error) { panic("oops") })
	if p, is := errors.AsType[*PanicError](err); !is || p.Value != "oops" {
		t.Errorf("error %v, want that of a panic", err)
	}
	for range 2 { // neither is remembered
		_, err = Get(t.Context(), g, "k", func(context.Context) (string, error) { return "", ErrNotFound })
		expect.ErrorIs(t, err, ErrNotFound)
		_, err = Get(t.Context(), g, "k", func(context.Context) (string, error) { return "", context.Canceled })
		expect.ErrorIs(t, err, context.Canceled)
	}
	_, err = Get(t.Context(), g, "k", func(ctx context.Context) (string, error) {
		return Get(ctx, g, "other", func(ctx context.Context) (string, error) { return Get(ctx, g, "k", returns("v")) })
	})
	expect.ErrorIs(t, err, ErrReentrant)
	expect.Equal(t, "loads", e.loads.Load(), 7)
}

func TestADisabledGuardAnswersTheOtherCalls(t *testing.T) {
	t.Parallel()
	g, e := newDisabled(t, Config{Verify: VerifyConfig{OneIn: 1}})
	expect.ErrorIs(t, g.Invalidate(t.Context(), "a", "b"), nil)
	expect.ErrorIs(t, g.Invalidate(t.Context(), "a", ""), errEmptyKey)
	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "t"), nil)
	expect.ErrorIs(t, g.InvalidateAll(t.Context()), nil)
	expect.ErrorIs(t, g.SelfCheck(redistest.Patiently(t)), nil)
	expect.Equal(t, "Stats", g.Stats(), Stats{MaxLoads: defaultMaxLoads, Subscribed: true})
	expect.Equal(t, "Verified", g.Verified(), Verified{})
	_, how, err := Fetch(t.Context(), g, "k", Source[string]{})
	expect.ErrorIs(t, err, ErrNotCached)
	expect.Equal(t, "outcome", how, "")
	v, how, err := Fetch(t.Context(), g, "k", Source[string]{
		Judge: func(string) Verdict { t.Error("judged"); return Serve },
		Load: func(_ context.Context, old *string) (string, error) {
			expect.Equal(t, "no old value", old == nil, true)
			return "v", nil
		},
	})
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "value", v, "v")
	expect.Equal(t, "outcome", how, Bypassed)
	for range 2 {
		found, err := GetMany(t.Context(), g, []string{"a", "b", "a"}, func(_ context.Context, missing []string) (map[string]string, error) {
			expect.Equal(t, "missing", len(missing), 2)
			return map[string]string{"a": "A"}, nil
		})
		expect.ErrorIs(t, err, nil)
		expect.Equal(t, "found", fmt.Sprint(found), "map[a:A]")
	}
	expect.Equal(t, "bypassed", e.count(Bypassed), 5)
}

func TestADisabledGuardInspectsWhatIsUnderWayHere(t *testing.T) {
	t.Parallel()
	g, e := newDisabled(t, Config{})
	expect.Equal(t, "without a load", mustInspect(t, g, "k").String(), "\"k\": missing\n")
	s := newSource("v")
	first := async(g, "k", s.load)
	<-s.begun
	second := async(g, "k", s.load)
	awaitSharing(t, g, "k", 2)
	i := mustInspect(t, g, "k")
	expect.Equal(t, "state", i.State, EntryMissing)
	expect.Equal(t, "here", i.Here, Here{Loads: 1, Callers: 2})
	expect.Equal(t, "another key", mustInspect(t, g, "other").Here, Here{})
	close(s.release)
	want(t, first, "v")
	want(t, second, "v")
	_, err := g.Inspect(t.Context(), "")
	expect.ErrorIs(t, err, errEmptyKey)
	expect.Equal(t, "errors of Redis", e.redisErrors.Load(), 0)
}

func TestADisabledGuardCannotBypassForOthers(t *testing.T) {
	t.Parallel()
	g, e := newDisabled(t, Config{})
	for _, d := range []time.Duration{time.Minute, 0} {
		expect.ErrorIs(t, g.BypassFleet(t.Context(), d), inprocess.ErrDisabled)
	}
	expect.Equal(t, "bypassed", g.Stats().Bypassed, false)
	for _, on := range []bool{true, false} {
		g.Bypass(on)
		expect.Equal(t, "bypassed", g.Stats().Bypassed, on)
		mustGetAs(t, g, "k", "v", Bypassed)
	}
	expect.Equal(t, "looks at the fleet", g.off.Has(whyoff.LookDue), false)
	expect.Equal(t, "errors of Redis", e.redisErrors.Load(), 0)
}

func TestUpdatesOfADisabledGuardExcludeOneAnother(t *testing.T) {
	t.Parallel()
	g, _ := newDisabled(t, Config{})
	var writing, most, writes atomic.Int64
	var all sync.WaitGroup
	for i := range 50 {
		keys := []string{"a", "b"}
		if i%2 == 0 {
			keys = []string{"b", "c"}
		}
		all.Go(func() {
			err := g.UpdateMany(context.Background(), keys, func(ctx context.Context) error {
				most.Store(max(most.Load(), writing.Add(1)))
				writes.Add(1)
				expect.ErrorIs(t, g.Update(ctx, "b", func(context.Context) error { return nil }), ErrReentrant)
				writing.Add(-1)
				return nil
			})
			expect.ErrorIs(t, err, nil)
		})
	}
	all.Wait()
	expect.Equal(t, "writes", writes.Load(), 50)
	expect.Equal(t, "at once", most.Load(), 1)
	expect.Equal(t, "somebody is left at the lock", g.process.Locks.Present("k"), false)
}

func TestAnUpdateOfADisabledGuardReturnsWhatWentWrong(t *testing.T) {
	t.Parallel()
	g, _ := newDisabled(t, Config{LeaseTTL: 100 * time.Millisecond, UpdateTimeout: 100 * time.Millisecond}) // it only has to end
	failed := errors.New("failed")
	expect.ErrorIs(t, g.Update(t.Context(), "k", func(context.Context) error { return failed }), failed)
	func() {
		defer func() { expect.Equal(t, "panic", recover(), any("oops")) }()
		_ = g.Update(t.Context(), "k", func(context.Context) error { panic("oops") })
	}()
	slow := g.Update(t.Context(), "k", func(ctx context.Context) error {
		<-ctx.Done()
		expect.ErrorIs(t, g.Update(context.Background(), "k", func(context.Context) error { return nil }), nil) // the lock is free
		return context.Cause(ctx)
	})
	expect.ErrorIs(t, slow, rwlock.ErrLeaseLost)

	g, _ = newDisabled(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	err := g.Update(t.Context(), "k", func(context.Context) error {
		waits := make(chan error, 1)
		go func() {
			waits <- g.Update(ctx, "k", func(context.Context) error { t.Error("written"); return nil })
		}()
		redistest.Await(t, "another update waits", func() bool {
			return g.process.Locks.Waiting("k") == 1
		})
		cancel()
		expect.ErrorIs(t, <-waits, rwlock.ErrNotAcquired, context.Canceled)
		return nil
	})
	expect.ErrorIs(t, err, nil)
}

func TestCloseEndsTheUpdatesAndLoadsOfADisabledGuard(t *testing.T) {
	t.Parallel()
	g, _ := newDisabled(t, Config{})
	writing, waiting := make(chan error, 1), make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		writing <- g.Update(context.Background(), "k", func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	<-begun
	go func() {
		waiting <- g.Update(context.Background(), "k", func(context.Context) error { t.Error("written"); return nil })
	}()
	redistest.Await(t, "another update waits", func() bool {
		return g.process.Locks.Waiting("k") == 1
	})
	load := newSource("v")
	got := async(g, "other", load.load)
	<-load.begun
	expect.ErrorIs(t, g.Close(), nil)
	expect.ErrorIs(t, <-writing, rwlock.ErrClosed)
	expect.ErrorIs(t, <-waiting, ErrClosed)
	expect.ErrorIs(t, (<-got).err, ErrClosed)
	for _, err := range []error{
		g.Invalidate(t.Context(), "k"), g.SelfCheck(redistest.Patiently(t)),
		g.Update(t.Context(), "k", func(context.Context) error { return nil }),
	} {
		expect.ErrorIs(t, err, ErrClosed)
	}
}

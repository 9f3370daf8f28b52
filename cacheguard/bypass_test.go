package cacheguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// mustGetAs is a Get with the outcome.
func mustGetAs(t *testing.T, g *Guard, key, value string, how Outcome) {
	t.Helper()
	expect.Returns(t, value, how, nil)(get(t.Context(), g, key, returns(value)))
}

func TestABypassingGuardLoadsAndStoresNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{FailClosed: true, Local: LocalConfig{MaxEntries: 10, TTL: time.Hour}})
	g := f.guards[0]
	mustGet(t, g, "k", returns("cached"))
	g.Bypass(true)
	expect.Equal(t, "bypassed", g.Stats().Bypassed, true)
	mustGetAs(t, g, "k", "loaded", Bypassed)
	mustGetAs(t, g, "new", "loaded", Bypassed)
	many, err := GetMany(t.Context(), g, []string{"k", "other"}, func(_ context.Context, keys []string) (map[string]string, error) {
		expect.Equal(t, "keys", len(keys), 2)
		return map[string]string{"k": "many", "other": "many"}, nil
	})
	expect.Equal(t, "GetMany", fmt.Sprint(many, err), "map[k:many other:many] <nil>")
	_, _, err = Fetch(t.Context(), g, "k", Source[string]{})
	expect.ErrorIs(t, err, ErrNotCached)
	expect.Equal(t, "stored", f.exists(f.value("new")) || f.exists(f.value("other")), false)
	expect.Equal(t, "elsewhere", mustGet(t, f.guards[1], "k", unwanted[string](t)), "cached")
	g.Bypass(false)
	expect.Equal(t, "bypassed", g.Stats().Bypassed, false)
	expect.Equal(t, "again", mustGet(t, g, "k", unwanted[string](t)), "cached")
}

func TestAPutOfABypassingGuardStoresNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	c := newCaches(t, f, new(rack).config())[0]
	for _, bypassed := range []bool{true, false} {
		f.guards[0].Bypass(bypassed)
		expect.ErrorIs(t, c.Put(t.Context(), 1, func(context.Context) (thing, error) { return thing{}, nil }))
		expect.Equal(t, "stored", f.exists(f.value(c.Key(1))), !bypassed)
	}
}

func TestABypassingGuardInvalidatesForAll(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	mustGet(t, f.guards[1], "k", returns("old"))
	f.guards[0].Bypass(true)
	db := newSource("old")
	before := async(f.guards[0], "k", db.load)
	<-db.begun
	db.value.Store("new")
	mustInvalidate(t, f.guards[0], "k")
	after := async(f.guards[0], "k", db.load)
	close(db.release)
	want(t, before, "old")
	want(t, after, "new")
	expect.Equal(t, "elsewhere", mustGet(t, f.guards[1], "k", returns("new")), "new")
	f.guards[0].Bypass(false)
	expect.Equal(t, "again", mustGet(t, f.guards[0], "k", unwanted[string](t)), "new")
}

func TestLoadsOfABypassingGuardAreSharedAndBounded(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{MaxLoads: 1}).guards[0]
	g.Bypass(true)
	db := newSource("v")
	all := []<-chan reply[string]{async(g, "a", db.load)}
	<-db.begun
	for range 10 {
		all = append(all, async(g, "b", db.load))
	}
	redistest.Await(t, "ten wait for one load", func() bool { return mustInspect(t, g, "b").Here == (Here{Loads: 1, Callers: 10, Bypassed: true}) })
	expect.Equal(t, "loads", db.loads.Load(), 1)
	close(db.release)
	for _, c := range all {
		want(t, c, "v")
	}
	if n := db.loads.Load(); n < 2 || n > 3 { // callers that asked after the second had begun share a third
		t.Errorf("%d loads", n)
	}
}

func TestTheWholeFleetBypassesForAWhile(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	mustGet(t, f.guards[0], "k", returns("cached"))
	expect.Must(t, f.guards[0].BypassFleet(t.Context(), time.Hour))
	expect.Equal(t, "here", f.guards[0].Stats().Bypassed, true)
	bypasses := func(is bool) func() bool {
		return func() bool {
			mustGet(t, f.guards[1], "k", returns("loaded"))
			return f.guards[1].Stats().Bypassed == is
		}
	}
	redistest.Await(t, "the other one knows", bypasses(true))
	late := newGuard(t, shared.Client(t), Config{Prefix: f.guards[0].cfg.Prefix})
	redistest.Await(t, "one that starts learns of it", func() bool {
		mustGet(t, late, "k", returns("loaded"))
		return late.Stats().Bypassed
	})
	ttl := f.redis.PTTL(t.Context(), f.guards[0].off.FleetKey()).Val()
	if ttl <= 0 || ttl > time.Hour {
		t.Errorf("it ends in %v", ttl)
	}
	expect.Must(t, f.guards[1].BypassFleet(t.Context(), 0))
	expect.Equal(t, "here", f.guards[1].Stats().Bypassed, false)
	redistest.Await(t, "the other one knows of the end", func() bool {
		mustGet(t, f.guards[0], "k", returns("loaded"))
		return !f.guards[0].Stats().Bypassed
	})
	expect.Equal(t, "what was cached before", mustGet(t, f.guards[1], "k", unwanted[string](t)), "cached")
}

func TestABypassOfTheFleetEndsByItselfWithoutRedis(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	g := f.guards[0]
	expect.Must(t, g.BypassFleet(t.Context(), 300*time.Millisecond))
	proxy.On(redistest.Command("pttl"), redistest.ReplyError("LOADING Redis is loading"))
	redistest.Await(t, "it has ended", func() bool { return !g.Stats().Bypassed })
	g.Bypass(true)
	g.off.Learn(time.Now(), time.Millisecond)
	redistest.Later()
	expect.Equal(t, "its own goes on", g.Stats().Bypassed, true)
}

func TestAnOlderAnswerDoesNotUndoABypass(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	asked := time.Now()
	g.off.Learn(asked.Add(time.Second), time.Hour)
	g.off.Learn(asked, 0)
	expect.Equal(t, "bypassed", g.Stats().Bypassed, true)
}

func TestABypassThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	for _, d := range []time.Duration{-1, 1, longestBypass + 1} {
		expect.Says(t, f.guards[0].BypassFleet(t.Context(), d), d.String())
	}
	proxy.On(redistest.Command("set"), redistest.ReplyError("LOADING Redis is loading"))
	expectRedisError(t, f.guards[0].BypassFleet(t.Context(), time.Minute), "bypass", "")
	expect.Equal(t, "bypassed", f.guards[0].Stats().Bypassed, false)
}

func TestAClosedOrMissingGuardBypassesNothing(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	_ = g.Close() // always nil
	g.Bypass(true)
	expect.ErrorIs(t, g.BypassFleet(t.Context(), time.Minute), ErrClosed)
	_, err := g.Inspect(t.Context(), "k")
	expect.ErrorIs(t, err, ErrClosed)
	var none *Guard
	none.Bypass(true)
	expect.ErrorIs(t, none.BypassFleet(t.Context(), time.Minute), errNilGuard)
}

func promiseBypassFleet(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	g, other := f.guards[0], f.guards[1]
	mustGet(t, g, "k", returns("cached"))
	expect.ErrorIs(t, g.BypassFleet(t.Context(), time.Hour), nil)
	expect.Equal(t, "here", g.Stats().Bypassed, true)
	expect.Equal(t, "value", mustGet(t, g, "k", returns("loaded")), "loaded")
	redistest.Await(t, "the other one knows", func() bool {
		mustGet(t, other, "k", returns("loaded"))
		return other.Stats().Bypassed
	})
	expect.Equal(t, "value there", mustGet(t, other, "k", returns("loaded")), "loaded")
	mustInvalidate(t, other, "k") // goes on
	expect.Equal(t, "entry", f.exists(f.value("k")), false)
	expect.ErrorIs(t, other.BypassFleet(t.Context(), 0), nil)
	expect.Equal(t, "there", other.Stats().Bypassed, false)
	redistest.Await(t, "the first one knows of the end", func() bool {
		mustGet(t, g, "k", returns("new"))
		return !g.Stats().Bypassed
	})
	mustGet(t, g, "k", returns("new"))
	expect.Equal(t, "value", mustGet(t, other, "k", unwanted[string](t)), "new")
}

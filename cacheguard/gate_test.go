package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// shop is a database of names that counts its queries.
type shop struct {
	name  atomic.Value
	loads atomic.Int64
}

func newShop(name string) *shop {
	s := new(shop)
	s.name.Store(name)
	return s
}

func (s *shop) load(context.Context, int) (string, error) {
	s.loads.Add(1)
	if name := s.name.Load().(string); name != "" {
		return name, nil
	}
	return "", ErrNotFound
}

func (s *shop) config() CacheConfig[int, string] {
	return CacheConfig[int, string]{Name: "thing", Load: s.load, Tags: func(int, string) []string { return []string{"all"} }}
}

// errShut is what a gate says.
var errShut = errors.New("not in this kind yet")

// gated is a Gate that can be shut.
type gated struct {
	shut  atomic.Bool
	asked atomic.Int64
}

func (g *gated) gate(context.Context, string) error {
	if g.asked.Add(1); g.shut.Load() {
		return errShut
	}
	return nil
}

type withoutCacheKey struct{}

// withoutCache is the context of a call that gateByContext refuses.
func withoutCache(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutCacheKey{}, true)
}

func gateByContext(ctx context.Context, _ string) error {
	if ctx.Value(withoutCacheKey{}) != nil {
		return errShut
	}
	return nil
}

func TestWhatTheGateRefusesIsLoadedAndNeitherReadNorStored(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.Gate = func(_ context.Context, key string) error {
		if key == "thing:1" {
			return nil
		}
		return errShut
	}
	f, db := newFleet(t, standalone(t), 1, cfg), newShop("a")
	c := newCaches(t, f, db.config())[0]
	for range 3 {
		expect.Equal(t, "let in", must(c.Get(context.Background(), 1)), "a")
		expect.Equal(t, "refused", must(c.Get(context.Background(), 2)), "a")
		f.stored()
	}
	expect.Equal(t, "loads", db.loads.Load(), 1+3)
	expect.Equal(t, "bypassed", f.events.count(Bypassed), 3)
	expect.Equal(t, "stored", fmt.Sprint(f.exists(f.value("thing:1")), f.exists(f.value("thing:2"))), "true false")
	_ = must(c.GetMany(context.Background(), []int{1, 2}))
	expect.Equal(t, "loads of a GetMany", db.loads.Load(), 5)
	expect.Equal(t, "bypassed", f.events.count(Bypassed), 4)
	expect.Says(t, lines(text(), "call goes without the cache")[0], "key=thing:2", "not in this kind yet")
	expect.Equal(t, "on the page", f.guards[0].observed().Happened()["call goes without the cache, Config.Gate says so: not in this kind yet"], 4)
	_, how, err := Fetch(context.Background(), f.guards[0], "page", Source[string]{Load: func(context.Context, *string) (string, error) { return "v", nil }})
	expect.ErrorIs(t, err)
	expect.Equal(t, "a Fetch", how, Bypassed)
	_, _, err = Fetch(context.Background(), f.guards[0], "page", Source[string]{})
	expect.ErrorIs(t, err, ErrNotCached)
}

func TestTheGateIsAskedOnceForEachKeyOfACall(t *testing.T) {
	t.Parallel()
	gate := new(gated)
	f, db := newFleet(t, standalone(t), 1, Config{Gate: gate.gate}), newShop("a")
	c := newCaches(t, f, db.config())[0]
	for _, shut := range []bool{false, true} {
		gate.shut.Store(shut)
		before := gate.asked.Load()
		_ = must(c.Get(context.Background(), 1))
		f.stored()
		_ = must(c.Get(context.Background(), 1))
		expect.Equal(t, "of two Gets", gate.asked.Load()-before, 2)
		_ = must(c.GetMany(context.Background(), []int{1, 2, 3}))
		expect.Equal(t, "and of a GetMany of three", gate.asked.Load()-before, 5)
		f.stored()
	}
}

func TestShutAndOpenAgainTheCacheServesNothingOlderThanTheWritesInBetween(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]Config{"Redis": {}, "local tier": {Local: LocalConfig{MaxEntries: 100}}}, func(t *testing.T, name string, cfg Config) {
		gate := new(gated)
		cfg.Gate = func(ctx context.Context, key string) error {
			if ctx.Value(withoutCacheKey{}) != nil { // the first instance's
				return gate.gate(ctx, key)
			}
			return nil
		}
		f, db := newFleet(t, standalone(t), 2, cfg).listening(), newShop("old")
		caches := newCaches(t, f, db.config())
		for _, c := range caches {
			expect.Equal(t, "before", must(c.Get(context.Background(), 1)), "old")
			f.stored()
		}
		first := withoutCache(context.Background())
		gate.shut.Store(true)
		db.name.Store("new")
		expect.Equal(t, "while it is shut", must(caches[0].Get(first, 1)), "new")
		err := caches[0].Update(first, 1, func(context.Context) error { return nil })
		expect.Equal(t, "the write", err, nil)
		gate.shut.Store(false)
		expect.Equal(t, "open again", must(caches[0].Get(first, 1)), "new")
		redistest.Await(t, "elsewhere", func() bool { return must(caches[1].Get(context.Background(), 1)) == "new" })
	})
}

func TestAGateThatAsksTheContextConcernsNoOtherCall(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{Gate: gateByContext}), newShop("old")
	g, c := f.guards[0], newCaches(t, f, db.config())[0]
	_ = must(c.Get(context.Background(), 1))
	f.stored()
	db.name.Store("new")
	without := withoutCache(context.Background())
	expect.Equal(t, "past the cache", must(c.Get(without, 1)), "new")
	expect.Equal(t, "of many", fmt.Sprint(must(c.GetMany(without, []int{1}))), "map[1:new]")
	v, err := Get(without, g, "outer", func(ctx context.Context) (string, error) { return c.Get(ctx, 1) })
	expect.Equal(t, "within a loader", fmt.Sprint(v, " ", err), "new <nil>")
	expect.Equal(t, "the others", must(c.Get(context.Background(), 1)), "old")
	expect.Equal(t, "stored", f.exists(f.value("outer")), false)
}

// FailClosed is about a Redis that does not answer: whoever shuts the gate wants the source.
func TestWhatTheGateRefusesIsLoadedWithFailClosedToo(t *testing.T) {
	t.Parallel()
	gate := new(gated)
	gate.shut.Store(true)
	f, db := newFleet(t, standalone(t), 1, Config{FailClosed: true, Gate: gate.gate}), newShop("a")
	expect.Equal(t, "value", must(newCaches(t, f, db.config())[0].Get(context.Background(), 1)), "a")
}

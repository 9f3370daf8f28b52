package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

func never(string) bool { return false }

func TestWhatServeDoesNotLetTheCacheServeIsLoadedAndNeitherReadNorStored(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{Serve: func(key string) bool { return key == "thing:1" }}), newShop("a")
	c := newCaches(t, f, db.config())[0]
	for range 3 {
		expect.Equal(t, "served", must(c.Get(context.Background(), 1)), "a")
		expect.Equal(t, "not served", must(c.Get(context.Background(), 2)), "a")
		f.stored()
	}
	expect.Equal(t, "loads", db.loads.Load(), 1+3)
	expect.Equal(t, "bypassed", f.events.count(Bypassed), 3)
	expect.Equal(t, "stored", fmt.Sprint(f.exists(f.value("thing:1")), f.exists(f.value("thing:2"))), "true false")
	_ = must(c.GetMany(context.Background(), []int{1, 2}))
	expect.Equal(t, "loads of a GetMany", db.loads.Load(), 5)
	expect.Equal(t, "nothing is asked for a shadow", f.guards[0].Stats().Shadowed, Shadowed{})
}

func TestTurnedOffAndOnAgainTheCacheServesNothingOlderThanTheWritesInBetween(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"Redis": {}, "local tier": {Local: LocalConfig{MaxEntries: 100}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, db := newFleet(t, standalone(t), 2, cfg).listening(), newShop("old")
			caches := newCaches(t, f, db.config())
			for _, c := range caches {
				expect.Equal(t, "before", must(c.Get(context.Background(), 1)), "old")
				f.stored()
			}
			f.guards[0].SetServe(never)
			db.name.Store("new")
			expect.Equal(t, "while it is off", must(caches[0].Get(context.Background(), 1)), "new")
			err := caches[0].Update(context.Background(), 1, func(context.Context) error { return nil })
			expect.Equal(t, "the write", err, nil)
			f.guards[0].SetServe(nil)
			expect.Equal(t, "on again", must(caches[0].Get(context.Background(), 1)), "new")
			redistest.Await(t, "elsewhere", func() bool { return must(caches[1].Get(context.Background(), 1)) == "new" })
		})
	}
}

func TestACallsOwnBypassConcernsNoOtherCall(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{}), newShop("old")
	g, c := f.guards[0], newCaches(t, f, db.config())[0]
	_ = must(c.Get(context.Background(), 1))
	f.stored()
	db.name.Store("new")
	past := g.WithoutCache(context.Background())
	expect.Equal(t, "past the cache", must(c.Get(past, 1)), "new")
	expect.Equal(t, "of many", fmt.Sprint(must(c.GetMany(past, []int{1}))), "map[1:new]")
	v, err := Get(past, g, "outer", func(ctx context.Context) (string, error) { return c.Get(ctx, 1) })
	expect.Equal(t, "within a loader", fmt.Sprint(v, " ", err), "new <nil>")
	expect.Equal(t, "the others", must(c.Get(context.Background(), 1)), "old")
	expect.Equal(t, "stored", f.exists(f.value("outer")), false)
}

// awaitShadows waits until n shadows have asked, and all of them are done.
func awaitShadows(t *testing.T, g *Guard, n uint64) Shadowed {
	t.Helper()
	redistest.Await(t, "shadows", func() bool {
		s := g.Stats().Shadowed
		return s.Hits+s.Missed+s.Failed == n && g.shadowed.running.Load() == 0 && g.verifier.Running.Load() == 0
	})
	return g.Stats().Shadowed
}

func TestAShadowChangesNothingForCallersAndCountsWhatWouldHaveBeen(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{Shadow: 1, Verify: VerifyConfig{Delay: time.Millisecond}}), newShop("a")
	g, c := f.guards[0], newCaches(t, f, db.config())[0]
	expect.Equal(t, "first", must(c.Get(context.Background(), 1)), "a")
	s := awaitShadows(t, g, 1)
	expect.Equal(t, "hits of the first", s.Hits, 0)
	f.stored()
	expect.Equal(t, "loads, with that of the shadow", db.loads.Load(), 2)
	expect.Equal(t, "second", must(c.Get(context.Background(), 1)), "a")
	expect.Equal(t, "of many", fmt.Sprint(must(c.GetMany(context.Background(), []int{1}))), "map[1:a]")
	s = awaitShadows(t, g, 3)
	expect.Equal(t, "shadows", fmt.Sprint(s.Hits, s.Differed, s.Old, s.Failed, s.Took > 0), "2 0 0 0 true")
	expect.Equal(t, "loads", db.loads.Load(), 4)
	expect.Equal(t, "bypassed", f.events.count(Bypassed), 3)

	db.name.Store("b") // and nobody invalidates
	expect.Equal(t, "the caller gets", must(c.Get(context.Background(), 1)), "b")
	s = awaitShadows(t, g, 4)
	expect.Equal(t, "shadows", fmt.Sprint(s.Hits, s.Differed, s.Old), "3 1 1")
	if err := g.InvalidateTags(context.Background(), "all"); err != nil { // what the shadow stored has its tags
		t.Fatal(err)
	}
	expect.Equal(t, "then", must(c.Get(context.Background(), 1)), "b")
	s = awaitShadows(t, g, 5)
	expect.Equal(t, "shadows", fmt.Sprint(s.Hits, s.Differed, s.Old), "3 1 1")
}

// Somebody has to find the writer, by the key.
func TestTheKeyOfAnOldValueIsLogged(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"shadow": {Shadow: 1}, "verify": {Verify: VerifyConfig{OneIn: 1}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var log bytes.Buffer
			cfg.Verify.Delay, cfg.Logger = time.Millisecond, slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
			f, db := newFleet(t, standalone(t), 1, cfg), newShop("a")
			c := newCaches(t, f, db.config())[0]
			_ = must(c.Get(context.Background(), 7))
			redistest.Await(t, "it is cached", func() bool { return f.exists(f.value("thing:7")) })
			f.stored()
			db.name.Store("b") // and nobody invalidates
			redistest.Await(t, "it is logged", func() bool {
				_ = must(c.Get(context.Background(), 7))
				mu.Lock()
				defer mu.Unlock()
				return strings.Contains(log.String(), "a write did not invalidate it") && strings.Contains(log.String(), "key=thing:7")
			})
			_ = f.guards[0].Close() // nobody writes to the log after it
		})
	}
}

func TestAShadowFindsAbsenceThatIsOld(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{Shadow: 1, Verify: VerifyConfig{Delay: time.Millisecond}}), newShop("")
	g, c := f.guards[0], newCaches(t, f, db.config())[0]
	for n := range 2 {
		_, err := c.Get(context.Background(), 1)
		expect.ErrorIs(t, err, ErrNotFound)
		awaitShadows(t, g, uint64(n)+1)
		f.stored()
	}
	db.name.Store("born")
	expect.Equal(t, "the caller gets", must(c.Get(context.Background(), 1)), "born")
	s := awaitShadows(t, g, 3)
	expect.Equal(t, "shadows", fmt.Sprint(s.Hits, s.Differed, s.Old), "2 1 1")
}

func TestWithoutRedisAShadowFailsAndItsCallersDoNotNotice(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	proxy.On(func([]string) bool { return true }, redistest.ReplyError("ERR it is broken"))
	f := newFleetOn(t, shared.Client(t), Config{Shadow: 1, FailClosed: true}, proxy.Client(t))
	db := newShop("a")
	c := newCaches(t, f, db.config())[0]
	for range 20 {
		expect.Equal(t, "value", must(c.Get(context.Background(), 1)), "a")
	}
	s := awaitShadows(t, f.guards[0], 20)
	expect.Equal(t, "shadows", fmt.Sprint(s.Hits, s.Failed), "0 20")
	expect.Equal(t, "loads", db.loads.Load(), 20)
}

func TestAShadowLoadsWithSpareSlotsOnly(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{Shadow: 1, MaxLoads: 1})
	g, db := f.guards[0], newSource("v")
	first := async(g, "first", db.load)
	<-db.begun
	db.release <- struct{}{}
	want(t, first, "v")
	second, third := async(g, "second", db.load), async(g, "third", db.load) // while the shadow of the first wants the slot, or has it
	for range 5 {                                                            // those two, and three shadows
		<-db.begun
		expect.Equal(t, "loads", g.Stats().Loading, 1)
		db.release <- struct{}{}
	}
	want(t, second, "v")
	want(t, third, "v")
	awaitShadows(t, g, 3)
}

func TestShadowIsRefusedWithItsName(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{-0.1, 1.1} {
		if _, err := New(shared.Client(t), Config{Shadow: share}); err == nil || !strings.Contains(err.Error(), "Config.Shadow: ") {
			t.Errorf("%v: %v", share, err)
		}
	}
	var g *Guard
	g.SetServe(never)
	if ctx := g.WithoutCache(context.Background()); ctx != context.Background() || errors.Is(ctx.Err(), context.Canceled) {
		t.Error("a nil Guard changes the context")
	}
}

package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// numbers yields the numbers from 1 to n.
func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i + 1) {
				return
			}
		}
	}
}

type warmReply struct {
	Warmed
	err error
}

func asyncWarm(ctx context.Context, c *Cache[int, thing], ids iter.Seq[int], cfg WarmConfig) <-chan warmReply {
	done := make(chan warmReply, 1)
	go func() { // owner: the test; ends with Warm; joined by receiving
		w, err := c.Warm(ctx, ids, cfg)
		done <- warmReply{w, err}
	}()
	return done
}

func TestWarmLoadsWhatIsNotThereAndSkipsWhatIs(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 2, Config{}), &rack{poison: 250}
	caches := newCaches(t, f, db.config())
	for id := range 30 {
		_ = must(caches[0].Get(context.Background(), id+1))
	}
	f.stored()
	db.one.Store(0)
	var steps []Warmed
	w, err := caches[1].Warm(context.Background(), numbers(240), WarmConfig{Pause: -1, Progress: func(w Warmed) { steps = append(steps, w) }})
	expect.Equal(t, "warmed", fmt.Sprint(w, " ", err), "{210 30 0} <nil>")
	expect.Equal(t, "queries", fmt.Sprint(db.calls(), db.one.Load()), "[70 100 40] 0")
	expect.Equal(t, "progress", fmt.Sprint(steps), "[{70 30 0} {170 30 0} {210 30 0}]")
	expect.Equal(t, "answers that count as a caller's", f.events.count(Loaded), 30)
	f.stored()
	got := must(caches[0].GetMany(context.Background(), slices.Collect(numbers(240))))
	expect.Equal(t, "then callers find all of them", fmt.Sprint(len(got), len(db.calls())), "240 3")
	w, err = caches[0].Warm(context.Background(), numbers(260), WarmConfig{Batch: 20, Pause: -1})
	expect.Equal(t, "with a failure", w, Warmed{Present: 240, Failed: 20})
	var key *KeyError
	if !errors.As(err, &key) || !errors.Is(err, errPoison) {
		t.Error(key, err)
	}
}

func TestWarmWithoutLoadManyLoadsAQuarterOfMaxLoadsAtATime(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{MaxLoads: 8}), newSource("v")
	c := newCaches(t, f, CacheConfig[int, thing]{Name: "thing", Load: func(ctx context.Context, id int) (thing, error) {
		_, err := db.load(ctx)
		return thing{ID: id}, err
	}})[0]
	warm := asyncWarm(context.Background(), c, numbers(6), WarmConfig{Pause: -1})
	for range 3 {
		<-db.begun
		<-db.begun
		expect.Equal(t, "loads", f.guards[0].Stats().Loading, 2)
		expect.Equal(t, "calls of Warm", f.guards[0].Stats().Warming, 1)
		db.release <- struct{}{}
		db.release <- struct{}{}
	}
	w := <-warm
	expect.Equal(t, "warmed", fmt.Sprint(w.Warmed, " ", w.err), "{6 0 0} <nil>")
}

func TestWarmWaitsUntilNoCallersLoadWaits(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]Config{"MaxLoads": {MaxLoads: 1}, "FleetLoads": {Limiter: permitsOf(1)}}, func(t *testing.T, _ string, cfg Config) {
		f, db := newFleet(t, standalone(t), 1, cfg), new(rack)
		g, c := f.guards[0], newCaches(t, f, db.config())[0]
		callers := newSource("v")
		first := async(g, "first", callers.load)
		<-callers.begun
		warm := asyncWarm(context.Background(), c, numbers(3), WarmConfig{})
		second := async(g, "second", callers.load)
		redistest.Await(t, "the caller's load queues", func() bool {
			s := g.Stats()
			return s.Of("loads_queued")+s.Of("limiter_queued") == 1 && s.Warming == 1
		})
		callers.release <- struct{}{}
		want(t, first, "v")
		<-callers.begun
		expect.Equal(t, "queries of Warm", len(db.calls()), 0)
		callers.release <- struct{}{}
		want(t, second, "v")
		w := <-warm
		expect.Equal(t, "warmed", fmt.Sprint(w.Warmed, " ", w.err), "{3 0 0} <nil>")
	})
}

func TestACallerDoesNotWaitForTheSlotThatWarmWaitsFor(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{MaxLoads: 1}), new(rack)
	cfg := db.config()
	cfg.LoadMany = nil // so each key has a flight that waits for a slot
	g, c := f.guards[0], newCaches(t, f, cfg)[0]
	callers := newSource("v")
	first := async(g, "first", callers.load)
	<-callers.begun
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	warm := asyncWarm(ctx, c, numbers(1), WarmConfig{})
	f.awaitWaiting(0, 2)
	same := asyncThing(context.Background(), c, 1) // what Warm wants too
	redistest.Await(t, "it queues for itself", func() bool { return g.Stats().Queued == 1 })
	callers.release <- struct{}{}
	want(t, first, "v")
	want(t, same, thing{ID: 1})
	<-warm
	expect.Equal(t, "loads", db.one.Load(), 1)
}

func TestWarmStopsWithItsContextAndWithTheGuard(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{}), &rack{begun: make(chan struct{}, 1), release: make(chan struct{})}
	c := newCaches(t, f, db.config())[0]
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	warm := asyncWarm(ctx, c, numbers(1000), WarmConfig{})
	<-db.begun
	why := errors.New("a signal")
	cancel(why)
	expect.ErrorIs(t, (<-warm).err, why)
	redistest.Await(t, "no load is left", func() bool { return f.guards[0].Stats().Loading == 0 })
	warm = asyncWarm(context.Background(), c, numbers(1000), WarmConfig{})
	<-db.begun
	_ = f.guards[0].Close()
	expect.ErrorIs(t, (<-warm).err, ErrClosed)
	expect.Equal(t, "closed", f.guards[0].Stats().Closed, true)
}

func TestInstancesThatWarmTheSameThingsShareTheWork(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 3, Config{Limiter: permitsOf(2)}).listening(), new(rack)
	caches := newCaches(t, f, db.config())
	var all []<-chan warmReply
	for _, c := range caches {
		all = append(all, asyncWarm(context.Background(), c, numbers(500), WarmConfig{Batch: 50, Pause: time.Millisecond}))
	}
	loaded := 0
	for _, w := range all {
		w := <-w
		if w.err != nil || w.Loaded+w.Present != 500 {
			t.Errorf("%+v", w)
		}
		loaded += w.Loaded
	}
	expect.Equal(t, "loaded", loaded, 500)
}

func TestWhatCannotBeCachedIsNotWarmed(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{}), new(rack)
	c := newCaches(t, f, db.config())[0]
	f.guards[0].Bypass(true)
	w, err := c.Warm(context.Background(), numbers(3), WarmConfig{})
	expect.Equal(t, "warmed", w, Warmed{Failed: 3})
	expectRedisError(t, err, "", "")
	expect.Equal(t, "queries", fmt.Sprint(db.calls(), db.one.Load()), "[] 0")
	f.guards[0].Bypass(false)
	w, err = c.Warm(context.Background(), slices.Values([]int(nil)), WarmConfig{})
	expect.Equal(t, "nothing", fmt.Sprint(w, " ", err), "{0 0 0} <nil>")
	expect.Says(t, expect.Err(c.Warm(context.Background(), numbers(3), WarmConfig{Batch: -1, Pause: 5})), "WarmConfig.Batch", "WarmConfig.Pause")
}

// storedThings is how many of the things are in Redis.
func storedThings(t *testing.T, f *fleet, c *Cache[int, thing], n int) (stored int) {
	t.Helper()
	for id := range numbers(n) {
		if f.exists(f.value(c.Key(id))) {
			stored++
		}
	}
	return stored
}

func TestWarmStoresItsFirstBatchAfterASelfCheckHasInvalidatedATag(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing}), new(rack)
	expect.ErrorIs(t, f.guards[0].SelfCheck(redistest.Patiently(t)))
	cfg := db.config()
	cfg.Tags = func(id int, _ thing) []string { return []string{fmt.Sprint("owner:", id)} }
	c := newCaches(t, f, cfg)[0]
	w, err := c.Warm(context.Background(), numbers(300), WarmConfig{Pause: -1})
	expect.Equal(t, "warmed", fmt.Sprint(w, " ", err), "{300 0 0} <nil>")
	expect.Equal(t, "stored", storedThings(t, f, c, 300), 300)
	expect.Equal(t, "queries", fmt.Sprint(db.calls(), f.events.rejected.Load()), "[100 100 100] 0")
}

// disturbed warms things, and does something on another instance while each query runs.
func disturbed(t *testing.T, tag func() string, things, batch int, do func(*Guard) error) (w warmReply, queries string, stored int) {
	t.Helper()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing, LeaseTTL: time.Minute})
	db := &rack{begun: make(chan struct{}), release: make(chan struct{})}
	cfg := db.config()
	cfg.Tags = func(int, thing) []string { return []string{tag()} }
	c := newCaches(t, f, cfg)[0]
	done := asyncWarm(context.Background(), c, numbers(things), WarmConfig{Batch: batch, Pause: -1})
	for {
		select {
		case <-db.begun:
			expect.ErrorIs(t, do(f.guards[1]))
			db.release <- struct{}{}
		case w = <-done:
			return w, fmt.Sprint(db.calls(), f.events.rejected.Load()), storedThings(t, f, c, things)
		}
	}
}

func TestWhatWarmHasLoadedWhileAnUnrelatedTagWasInvalidatedIsLoadedOnceMoreAndStored(t *testing.T) {
	t.Parallel()
	own := func() string { return "own" }
	w, queries, stored := disturbed(t, own, 40, 20, func(g *Guard) error { return g.InvalidateTags(context.Background(), "unrelated") })
	expect.Equal(t, "warmed", fmt.Sprint(w.Warmed, " ", w.err), "{40 0 0} <nil>")
	expect.Equal(t, "queries, and loads that were rejected", queries, "[20 20 20 20] 40") // the tags of a key are known once it was loaded
	expect.Equal(t, "stored", stored, 40)
}

func TestWhatIsRejectedAgainCountsAsFailed(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(*Guard) error{
		"they have other tags now":  func(g *Guard) error { return g.InvalidateTags(context.Background(), "unrelated") },
		"the keys were invalidated": func(g *Guard) error { return g.Invalidate(context.Background(), "thing:1", "thing:2") },
	}, func(t *testing.T, _ string, do func(*Guard) error) {
		w, queries, stored := disturbed(t, rand.Text, 2, 2, do)
		expect.Equal(t, "warmed", w.Warmed, Warmed{Failed: 2})
		expect.Equal(t, "queries", queries, "[2 2] 4")
		expect.Equal(t, "stored", stored, 0)
		var key *KeyError
		if !errors.As(w.err, &key) || !errors.Is(w.err, errRejected) || !strings.HasPrefix(key.Key, "thing:") {
			t.Error(w.err)
		}
	})
}

func TestLoadedIsWhatIsStoredOrNeedNotBe(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing, MaxValueBytes: 12, NegativeTTL: off})
	c := newCaches(t, f, CacheConfig[int, string]{Name: "text", Load: func(ctx context.Context, id int) (string, error) {
		switch id {
		case 1:
			return "", ErrNotFound
		case 2:
			SetTTL(ctx, 0)
		case 3:
			return "longer than that", nil
		}
		return "short", nil
	}})[0]
	w, err := c.Warm(context.Background(), numbers(4), WarmConfig{Pause: -1})
	expect.Equal(t, "warmed", w, Warmed{Loaded: 3, Failed: 1})
	var key *KeyError
	if !errors.As(err, &key) || key.Key != "text:3" || !strings.Contains(err.Error(), "MaxValueBytes") {
		t.Error(err)
	}
}

func TestWarmCountsAsFailedWhatRedisDoesNotConfirm(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: brisk, LeaseTTL: time.Minute})
	db := new(rack)
	c := newCaches(t, f, db.config())[0]
	rule := proxy.On(steps["fill"], redistest.Hold)
	defer rule.Release()
	w, err := c.Warm(context.Background(), numbers(1), WarmConfig{})
	expect.Equal(t, "warmed", w, Warmed{Failed: 1})
	expectRedisError(t, err, "fill", "")
}

package cacheguard

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// replacingFleet is a fleet with a key that is hot on all instances.
func replacingFleet(t *testing.T, n int, cfg Config) (*fleet, *source, []*Cache[int, string]) {
	t.Helper()
	f, db := newFleet(t, standalone(t), n, cfg), newSource("old")
	caches := replacers(t, f, db)
	db.warm(f, caches, 1)
	db.value.Store("new")
	return f, db, caches
}

// removed fails the test unless the thing is gone, and the Guard counts that.
func removed(t *testing.T, c *Cache[int, string], f *fleet) {
	t.Helper()
	expect.Equal(t, "it is in Redis", f.exists(f.guards[0].keys.ValueKey(c.Key(1))), false)
	expect.Equal(t, "replaced", c.guard.Stats().Replaced, uint64(0))
	expect.Equal(t, "not replaced", c.guard.Stats().NotReplaced, uint64(1))
}

// What another write does while the new value is being loaded decides: this one is not known to be new enough.
func TestAValueIsRemovedIfAnotherWriteCameWhileItsReplacementWasLoaded(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(f *fleet, key string) error{
		"Invalidate": func(f *fleet, key string) error { return f.guards[1].Invalidate(context.Background(), key) },
		"Update": func(f *fleet, key string) error {
			return f.guards[1].Update(context.Background(), key, func(context.Context) error { return nil })
		},
		"Done": func(f *fleet, key string) error {
			in, err := f.guards[1].Intend(context.Background(), Changes{Keys: []string{key}})
			return errors.Join(err, in.Done(context.Background()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, db, caches := replacingFleet(t, 1, Config{})
			f.guards = append(f.guards, newGuard(t, shared.Client(t), Config{Prefix: f.guards[0].cfg.Prefix})) // it has no Cache
			db.during(t, func() error { return caches[0].Invalidate(context.Background(), 1) }, func() {
				expect.Equal(t, "the other write", other(f, caches[0].Key(1)), nil)
			})
			removed(t, caches[0], f)
		})
	}
}

// Of three writers, the second removes the key: then the first one's load stores nothing. If that ended the third one's, which began later, writers of a
// hot key would end each other's for ever.
func TestAWriterThatCannotReplaceLeavesALaterLoadAlone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(db *source, leave func()){
		"its load is refused": func(db *source, _ func()) { db.release <- struct{}{} },
		"its context ends":    func(_ *source, leave func()) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, standalone(t), 2, Config{})
			dbs := []*source{newSource("new"), newSource("new")}
			var writers []*Cache[int, string]
			for i, g := range f.guards {
				c := must(NewCache(g, CacheConfig[int, string]{
					Name: "hot", Replace: time.Hour, Load: func(ctx context.Context, _ int) (string, error) { return dbs[i].load(ctx) },
				}))
				c.isAsked(c.Key(1), 1)
				writers = append(writers, c)
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			returned := [2]chan error{make(chan error, 1), make(chan error, 1)}
			begin := func(i int, ctx context.Context) {
				go func() { returned[i] <- writers[i].Invalidate(ctx, 1) }() // owner: the test; joined below
				<-dbs[i].begun
			}
			value := f.guards[0].keys.ValueKey(writers[0].Key(1))
			begin(0, ctx)
			expect.Equal(t, "the lease is removed", f.redis.Del(t.Context(), protocol.LeaseKey(value)).Val(), int64(1))
			begin(1, t.Context())
			end(dbs[0], leave)
			expect.Equal(t, "the first", <-returned[0], nil)
			dbs[1].release <- struct{}{}
			expect.Equal(t, "the third", <-returned[1], nil)
			expect.Equal(t, "its value is there", f.exists(value), true)
			for i, replaced := range []uint64{0, 1} {
				expect.Equal(t, "replaced", f.guards[i].Stats().Replaced, replaced)
			}
		})
	}
}

// Else each write would cost a read for each instance that was asked for the key.
func TestNobodyLooksForWhatIsReplaced(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), Config{}, shared.Client(t), proxy.Client(t)).listening()
	db := newSource("old")
	caches := replacers(t, f, db)
	db.warm(f, caches, 1, 2)
	var looks [3]atomic.Int64 // by key
	proxy.On(func(args []string) bool {
		for k := range looks {
			if slices.Contains(args, f.guards[0].keys.ValueKey(caches[0].Key(k))) {
				looks[k].Add(1)
			}
		}
		return false
	}, redistest.CutBefore)
	db.during(t, func() error { return caches[0].Invalidate(context.Background(), 1) }, func() {})
	other := newGuard(t, shared.Client(t), Config{Prefix: f.guards[0].cfg.Prefix}) // it has no Cache
	db.release <- struct{}{}
	mustInvalidateKey(t, other, caches[0].Key(2)) // its notice comes behind those of the other key
	redistest.Await(t, "it looks for what is removed", func() bool { return looks[2].Load() > 0 })
	expect.Equal(t, "looks for what is replaced", looks[1].Load(), int64(0))
	<-db.begun
	db.during(t, func() error { return caches[0].Invalidate(context.Background(), 1) }, func() {
		f.redis.Del(t.Context(), f.lease(caches[0].Key(1)))
	})
	db.release <- struct{}{}
	redistest.Await(t, "it looks for what was removed instead", func() bool { return looks[1].Load() > 0 })
}

// An intent that stands when the value is put in place gives it an end, as it does what others store.
func TestAReplacementEndsWithAnIntentThatWasAnnouncedMeanwhile(t *testing.T) {
	t.Parallel()
	f, db, caches := replacingFleet(t, 1, Config{LeaseTTL: time.Minute})
	key := caches[0].Key(1)
	var in *Intent
	db.during(t, func() error { return caches[0].Invalidate(context.Background(), 1) }, func() {
		in = mustIntend(t, f.guards[0], Changes{Keys: []string{key}})
	})
	hit(t, caches[0], 1, "new")
	left := f.redis.PTTL(t.Context(), f.guards[0].keys.ValueKey(key)).Val()
	if left <= 0 || left > f.guards[0].keys.IntentTTL() {
		t.Errorf("it lasts for %v", left)
	}
	in.kept.Stop()
}

func TestAValueIsRemovedIfItsReplacementCannotBeLoaded(t *testing.T) {
	t.Parallel()
	t.Run("no slot", func(t *testing.T) {
		t.Parallel()
		f, _, caches := replacingFleet(t, 1, Config{MaxLoads: 1})
		s := f.guards[0].loaders.limits.Try(t.Context(), limit.Need{})
		defer f.guards[0].loaders.limits.Free(s)
		mustInvalidateKey(t, f.guards[0], caches[0].Key(1))
		removed(t, caches[0], f)
	})
	t.Run("the load fails", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, standalone(t), 1, Config{})
		var failure error
		c := newCaches(t, f, CacheConfig[int, string]{
			Name: "hot", Replace: time.Hour, Load: func(context.Context, int) (string, error) { return "old", failure },
		})[0]
		f.wantOf(c, 1, "old", nil)
		failure = errors.New("no database")
		expect.Equal(t, "Invalidate", c.Invalidate(t.Context(), 1), nil)
		removed(t, c, f)
		failure = nil
		f.wantOf(c, 1, "old", nil) // the failure is not remembered
	})
	t.Run("its call ends", func(t *testing.T) {
		t.Parallel()
		f, db, caches := replacingFleet(t, 1, Config{})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- caches[0].Invalidate(ctx, 1) }() // owner: the test; joined below
		<-db.begun
		cancel()
		expect.Equal(t, "Invalidate", <-done, nil)
		removed(t, caches[0], f)
	})
	t.Run("the guard is closed", func(t *testing.T) {
		t.Parallel()
		f, db, caches := replacingFleet(t, 2, Config{})
		done := make(chan error, 1)
		go func() { done <- caches[0].Invalidate(context.Background(), 1) }() // owner: the test; joined below
		<-db.begun
		expect.Equal(t, "Close", f.guards[0].Close(), nil)
		expect.Equal(t, "Invalidate", <-done, nil)
		removed(t, caches[0], f)
	})
}

// What a transaction reads may be its own, so what it invalidates is removed.
func TestWhatATransactionInvalidatesIsRemoved(t *testing.T) {
	t.Parallel()
	f, db, caches := replacingFleet(t, 1, Config{})
	in := mustIntend(t, f.guards[0], Changes{Keys: []string{"another"}})
	expect.Equal(t, "Invalidate", caches[0].Invalidate(in.Context(t.Context()), 1), nil)
	expect.Equal(t, "it is in Redis", f.exists(f.guards[0].keys.ValueKey(caches[0].Key(1))), false)
	expect.Equal(t, "loads", db.loads.Load(), int64(1))
	mustDone(t, in)
}

// A key that nobody asks for is not worth a load.
func TestAKeyThatWasNotAskedForLatelyIsRemoved(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{}), newSource("old")
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Millisecond, Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) },
	})[0]
	db.warm(f, []*Cache[int, string]{c}, 1)
	redistest.Await(t, "it was asked for long ago", func() bool {
		of, _ := f.guards[0].replaceable(t.Context(), c.Key(1), 0)
		return of == nil
	})
	expect.Equal(t, "Invalidate", c.Invalidate(t.Context(), 1, 2), nil)
	expect.Equal(t, "it is in Redis", f.exists(f.guards[0].keys.ValueKey(c.Key(1))), false)
	expect.Equal(t, "loads", db.loads.Load(), int64(1))
}

// A process that dies after the announcement leaves nothing old: what was cached ends with the intent.
func TestWhatADeadProcessWouldHaveReplacedEndsWithItsAnnouncement(t *testing.T) {
	t.Parallel()
	f, _, caches := replacingFleet(t, 2, Config{LeaseTTL: brisk})
	key := caches[0].Key(1)
	value := f.guards[0].keys.ValueKey(key)
	c := f.guards[0].writes.Begin()
	expect.Equal(t, "Announce", c.Announce(t.Context(), []string{key}, nil), nil)
	c.Stop()
	redistest.Await(t, "it is gone", func() bool { return !f.exists(value) })
}

// The entries of other versions are removed: who reads them has another loader.
func TestAReplacementRemovesTheEntriesOfOtherVersions(t *testing.T) {
	t.Parallel()
	f, db, caches := replacingFleet(t, 1, Config{})
	next := newGuard(t, shared.Client(t), Config{Prefix: f.guards[0].cfg.Prefix})
	c, err := NewCache(next, CacheConfig[int, string]{Name: "hot", Version: 1, Load: func(context.Context, int) (string, error) { return "old", nil }})
	expect.Equal(t, "NewCache", err, nil)
	_, err = c.Get(t.Context(), 1)
	expect.Equal(t, "Get", err, nil)
	of1 := f.guards[0].keys.ValueKey(c.Key(1)) + ":v1"
	redistest.Await(t, "it is stored", func() bool { return f.exists(of1) })
	db.during(t, func() error { return caches[0].Invalidate(context.Background(), 1) }, func() {
		expect.Equal(t, "the other version is there meanwhile", f.exists(of1), true)
	})
	expect.Equal(t, "the other version is there", f.exists(of1), false)
	hit(t, caches[0], 1, "new")
}

// A tag that is invalidated while the new value is being loaded invalidates that too.
func TestAReplacementIsNotServedIfATagWasInvalidatedMeanwhile(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{}), newSource("old")
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Hour, Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) },
		Tags: func(int, string) []string { return []string{"tag"} },
	})[0]
	db.warm(f, []*Cache[int, string]{c}, 1)
	db.during(t, func() error { return c.Invalidate(context.Background(), 1) }, func() {
		hit(t, c, 1, "old")
		expect.Equal(t, "InvalidateTags", f.guards[0].InvalidateTags(t.Context(), "tag"), nil)
	})
	db.value.Store("new")
	db.release <- struct{}{}
	f.wantOf(c, 1, "new", nil)
}

// A local tier has the new value when the call has returned, and none that ends with the announcement.
func TestALocalTierForgetsWhatIsReplaced(t *testing.T) {
	t.Parallel()
	f, db, caches := replacingFleet(t, 1, Config{TTL: time.Hour, Local: LocalConfig{MaxEntries: 100}})
	redistest.Await(t, "the tier has it", func() bool {
		_, how, err := caches[0].ask(t.Context(), 1)
		return err == nil && how == Local
	})
	db.during(t, func() error { return caches[0].Invalidate(context.Background(), 1) }, func() {
		for range 3 {
			hit(t, caches[0], 1, "old")
		}
	})
	v, err := caches[0].Get(t.Context(), 1)
	expect.Equal(t, "afterwards", v, "new")
	expect.Equal(t, "its error", err, nil)
	expect.Equal(t, "replaced", f.guards[0].Stats().Replaced, uint64(1))
}

// A storm of invalidations costs no more memory, and no more loads at a time, than there is room for.
func TestReloadsAreBounded(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{MaxLoads: 2}), newSource("old")
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Hour, Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) },
	})[0]
	g := f.guards[0]
	for k := range 2 * mostReloads {
		c.isAsked(c.Key(k), k)
	}
	expect.Equal(t, "InvalidateAll", g.InvalidateAll(t.Context()), nil)
	<-db.begun
	<-db.begun
	expect.Equal(t, "loads at a time", g.Stats().Loading, 2)
	expect.Equal(t, "dropped", g.Stats().NotReplaced, uint64(mostReloads))
}

// With thousands of keys the announcements alone would take seconds.
func TestACallReplacesNoMoreKeysThanCouldBeLoadedAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: 2})
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Hour, Load: func(context.Context, int) (string, error) { return "v", nil },
	})[0]
	ks := make([]int, 20)
	for i := range ks {
		ks[i] = i
		_, err := c.Get(t.Context(), i)
		expect.Equal(t, "error", err, nil)
	}
	expect.Equal(t, "Invalidate", c.Invalidate(t.Context(), ks...), nil)
	there := 0
	for k := range ks {
		if f.exists(f.guards[0].keys.ValueKey(c.Key(k))) {
			there++
		}
	}
	s := f.guards[0].Stats()
	expect.Equal(t, "in Redis", there, int(s.Replaced))
	expect.Equal(t, "all of them", s.Replaced+s.NotReplaced, uint64(len(ks)))
	expect.Equal(t, "beyond what could be loaded at once", s.NotReplaced >= uint64(len(ks)-2), true)
}

// A transaction of the caller's may never be committed.
func TestWhatReplacesIsLoadedWithoutTheValuesOfTheCall(t *testing.T) {
	t.Parallel()
	type tx struct{}
	for name, write := range map[string]func(ctx context.Context, c *Cache[int, string]) error{
		"Invalidate": func(ctx context.Context, c *Cache[int, string]) error { return c.Invalidate(ctx, 1) },
		"Update": func(ctx context.Context, c *Cache[int, string]) error {
			return c.Update(ctx, 1, func(context.Context) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaches(t, newFleet(t, standalone(t), 1, Config{}), CacheConfig[int, string]{
				Name: "hot", Replace: time.Hour, Load: func(ctx context.Context, _ int) (string, error) {
					if ctx.Value(tx{}) != nil {
						return "not committed", nil
					}
					return "committed", nil
				},
			})[0]
			_, err := c.Get(t.Context(), 1)
			expect.Equal(t, "error", err, nil)
			expect.Equal(t, name, write(context.WithValue(t.Context(), tx{}, true), c), nil)
			hit(t, c, 1, "committed")
		})
	}
}

// A transaction ends tags as InvalidateTags does: what was hot under them is loaded at once, by this instance if nobody else has it.
func TestWhatWasHotUnderATagIsLoadedAtOnceWhenATransactionIsDone(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(g *Guard) error{
		"Done": func(g *Guard) error {
			in, err := g.Intend(context.Background(), Changes{Tags: []string{"tag"}})
			if err != nil {
				return err
			}
			return in.Done(context.Background())
		},
		"Also": func(g *Guard) error {
			return g.Update(context.Background(), "another", func(ctx context.Context) error { return Also(ctx, Changes{Tags: []string{"tag"}}) })
		},
		"InvalidateTags": func(g *Guard) error { return g.InvalidateTags(context.Background(), "tag") },
		"InvalidateAll":  func(g *Guard) error { return g.InvalidateAll(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, db, c := taggedSource(t, Config{})
			db.value.Store("new")
			expect.Equal(t, name, write(f.guards[0]), nil)
			<-db.begun // though nobody asks
			db.release <- struct{}{}
			f.wantOf(c, 1, "new", nil)
			expect.Equal(t, "loads", db.loads.Load(), int64(2))
			expect.Equal(t, "not replaced", f.guards[0].Stats().NotReplaced, uint64(0))
		})
	}
}

// taggedSource is an instance with a thing that was asked for, and has a tag.
func taggedSource(t *testing.T, cfg Config) (*fleet, *source, *Cache[int, string]) {
	t.Helper()
	f, db := newFleet(t, standalone(t), 1, cfg), newSource("old")
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Hour, Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) },
		Tags: func(int, string) []string { return []string{"tag"} },
	})[0]
	db.warm(f, []*Cache[int, string]{c}, 1)
	return f, db, c
}

// The tag ends once more when the value is in place, as others may have made something of the old one under the tag.
func TestAKeyThatIsReplacedIsLoadedAgainIfItsTagWasInvalidatedByTheSameWrite(t *testing.T) {
	t.Parallel()
	f, db, c := taggedSource(t, Config{})
	in := mustIntend(t, f.guards[0], Changes{Keys: []string{c.Key(1)}, Tags: []string{"tag"}})
	db.value.Store("new")
	db.release <- struct{}{} // of the replacement, and of what the tag has loaded
	db.release <- struct{}{}
	mustDone(t, in)
	f.wantOf(c, 1, "new", nil)
	expect.Equal(t, "loads", db.loads.Load(), int64(3))
	expect.Equal(t, "replaced", f.guards[0].Stats().Replaced, uint64(1))
}

// A tag of more keys than may wait is no storm.
func TestATagOfThousandsHasNoMoreLoadedThanMayWait(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: 2})
	var now, most, loads atomic.Int64
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Hour, Tags: func(int, string) []string { return []string{"tag"} },
		Load: func(context.Context, int) (string, error) {
			loads.Add(1)
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			return "v", nil
		},
	})[0]
	const all = mostReloads + 500
	_, err := c.Warm(t.Context(), func(yield func(int) bool) {
		for k := range all {
			c.isAsked(c.Key(k), k)
			if !yield(k) {
				return
			}
		}
	}, WarmConfig{Pause: -1, Batch: all})
	expect.Equal(t, "Warm", err, nil)
	loads.Store(0)
	expect.Equal(t, "InvalidateTags", f.guards[0].InvalidateTags(t.Context(), "tag"), nil)
	redistest.Await(t, "what may wait is loaded", func() bool { return loads.Load() >= mostReloads })
	expect.Equal(t, "Close", f.guards[0].Close(), nil)
	expect.Equal(t, "loads", loads.Load(), int64(mostReloads))
	expect.Equal(t, "left to who asks", f.guards[0].Stats().NotReplaced, uint64(all-mostReloads))
	if most.Load() > 2 {
		t.Errorf("%d loads at a time", most.Load())
	}
}

package cacheguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// replacers are Caches that replace what is invalidated and was asked for, on each instance of the fleet.
func replacers(t *testing.T, f *fleet, db *source) []*Cache[int, string] {
	t.Helper()
	return newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Hour, Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) },
	})
}

// hit gets the thing, which has to be there.
func hit(t *testing.T, c *Cache[int, string], k int, want string) {
	t.Helper()
	v, how, err := c.ask(t.Context(), k)
	expect.Equal(t, "a hit", v+" "+string(how), want+" "+string(Hit))
	expect.Equal(t, "its error", err, nil)
}

// warm asks for the things on all instances.
func (db *source) warm(f *fleet, caches []*Cache[int, string], ks ...int) {
	f.t.Helper()
	for _, k := range ks {
		for i, c := range caches {
			if i == 0 {
				db.release <- struct{}{}
			}
			v, err := c.Get(f.t.Context(), k)
			expect.Equal(f.t, "at first", v, db.value.Load().(string))
			expect.Equal(f.t, "its error", err, nil)
			f.stored()
		}
		<-db.begun
	}
}

// during calls write, and then f while the value is being loaded that the write replaces; and returns when write has.
func (db *source) during(t *testing.T, write func() error, f func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- write() }() // owner: the test; joined below
	<-db.begun
	f()
	db.release <- struct{}{}
	expect.Equal(t, "the write", <-done, nil)
}

// Nobody waits for the load: the old value is served while it runs, and then the new one.
func promiseReplaced(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	db := newSource("v1")
	caches := replacers(t, f, db)
	db.warm(f, caches, 1)
	key, version := caches[0].Key(1), 1
	for name, write := range map[string]func() error{
		"Invalidate":       func() error { return caches[0].Invalidate(context.Background(), 1) },
		"Guard.Invalidate": func() error { return f.guards[1].Invalidate(context.Background(), key, "another") },
		"Done": func() error {
			in, err := f.guards[0].Intend(context.Background(), Changes{Keys: []string{"another", key}})
			if err != nil {
				return err
			}
			return in.Done(context.Background())
		},
	} {
		old := db.value.Load().(string)
		version++
		now := "v" + string(rune('0'+version))
		db.value.Store(now)
		db.during(t, write, func() {
			for _, c := range caches {
				hit(t, c, 1, old)
			}
		})
		for _, c := range caches {
			hit(t, c, 1, now)
		}
		expect.Equal(t, "loads after "+name, db.loads.Load(), int64(version))
	}
	expect.Equal(t, "replaced", f.guards[0].Stats().Replaced+f.guards[1].Stats().Replaced, uint64(3))
	expect.Equal(t, "not replaced", f.guards[0].Stats().NotReplaced+f.guards[1].Stats().NotReplaced, uint64(0))
}

// An Update removes the value before it writes; it ends with the new one.
func promiseReplacedByUpdate(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	db := newSource("old")
	caches := replacers(t, f, db)
	db.warm(f, caches, 1)
	db.during(t, func() error {
		return caches[0].Update(context.Background(), 1, func(context.Context) error {
			db.value.Store("new")
			return nil
		})
	}, func() {})
	for _, c := range caches {
		hit(t, c, 1, "new")
	}
	expect.Equal(t, "loads", db.loads.Load(), int64(2))
}

// A process without the Cache removes the value. One that was asked for the key loads it at once, though nobody asks.
func promiseReloaded(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	if f.deaf {
		return
	}
	db := newSource("old")
	all := replacers(t, f, db)
	f.listening()
	db.warm(f, all, 1)
	other := newGuard(t, a.client(t), Config{Prefix: f.guards[0].cfg.Prefix})
	db.value.Store("new")
	mustInvalidateKey(t, other, all[0].Key(1))
	<-db.begun
	db.release <- struct{}{}
	redistest.Await(t, "it is stored", func() bool { return f.exists(f.guards[0].keys.ValueKey(all[0].Key(1))) })
	for _, c := range all {
		hit(t, c, 1, "new")
	}
	expect.Equal(t, "loads", db.loads.Load(), int64(2))
}

func mustInvalidateKey(t *testing.T, g *Guard, key string) {
	t.Helper()
	expect.Equal(t, "Invalidate", g.Invalidate(context.Background(), key), nil)
}

// Writers that come while the value is being loaded share the next load.
func promiseReplacedTogether(t *testing.T, a arena) {
	f := newFleet(t, a, 3, Config{})
	if f.deaf {
		return // its writers hear of no load's end, and share none
	}
	db := newSource("v1")
	caches := replacers(t, f, db)
	f.listening()
	db.warm(f, caches, 1)
	key := caches[0].Key(1)
	db.value.Store("v2")
	done := make(chan error, 4)
	write := func(i int) { done <- f.guards[i].Invalidate(context.Background(), key) }
	go write(0) // owner: the test; as those below, joined by receiving
	<-db.begun
	db.value.Store("v3")
	for i := range f.guards { // one each, so that each has seen the first load when its instance is registered
		go write(i)
	}
	standing := func(n int64) {
		redistest.Await(t, fmt.Sprintf("%d stand", n), func() bool {
			return f.redis.ZCard(t.Context(), f.guards[0].keys.ValueKey(key)+":until").Val() == n
		})
	}
	standing(4)
	f.awaitRegisteredAt(f.guards[0].keys.ValueKey(key)+":lease", 3)
	hit(t, caches[2], 1, "v1")
	db.release <- struct{}{}
	<-db.begun
	expect.Equal(t, "the first", <-done, nil)
	standing(1) // the others share the load that began after they had come
	hit(t, caches[2], 1, "v2")
	db.release <- struct{}{}
	for range f.guards {
		expect.Equal(t, "another", <-done, nil)
	}
	for _, c := range caches {
		hit(t, c, 1, "v3")
	}
	expect.Equal(t, "loads", db.loads.Load(), int64(3))
}

// What has a tag is not known to be as new as the tag's end, so it is removed; and loaded at once, by one instance.
func promiseReloadedByTag(t *testing.T, a arena) {
	f, db := newFleet(t, a, 2, Config{}), newSource("old")
	caches := newCaches(t, f, CacheConfig[int, string]{
		Name: "hot", Replace: time.Hour, Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) },
		Tags: func(int, string) []string { return []string{"tag"} },
	})
	db.warm(f, caches, 1)
	f.listening()
	db.value.Store("new")
	expect.Equal(t, "InvalidateTags", f.guards[0].InvalidateTags(t.Context(), "tag"), nil)
	<-db.begun
	db.release <- struct{}{}
	for _, c := range caches {
		v, err := c.Get(t.Context(), 1)
		expect.Equal(t, "afterwards", v, "new")
		expect.Equal(t, "its error", err, nil)
		f.stored()
	}
	expect.Equal(t, "loads", db.loads.Load(), int64(2))
}

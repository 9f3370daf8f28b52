package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The same thing in three versions of a program. JSON decodes some of them as another, with fields missing.
type (
	plainThing   struct{ Name string }
	pricedThing  struct{ Name, Price string }
	renamedThing struct {
		Title string
		Price int
	}
)

func (v plainThing) text() string { return v.Name }

func (v pricedThing) text() string {
	if v.Price != "costs "+v.Name {
		return fmt.Sprintf("%+v", v)
	}
	return v.Name
}

func (v renamedThing) text() string {
	if v.Price != len(v.Title) {
		return fmt.Sprintf("%+v", v)
	}
	return v.Title
}

func makePlain(name string) plainThing     { return plainThing{name} }
func makePriced(name string) pricedThing   { return pricedThing{name, "costs " + name} }
func makeRenamed(name string) renamedThing { return renamedThing{name, len(name)} }

// release is an instance of one version of a program.
type release struct {
	guard   *Guard
	version int
	loads   atomic.Int64

	get        func(id int) (string, error)
	getMany    func(ids ...int) (map[int]string, error)
	put        func(id int, write func(context.Context) (string, error)) error
	invalidate func(ids ...int) error
	all        func() error // InvalidateAll
}

// newRelease makes one that loads names of things.
func newRelease[V interface{ text() string }](
	t *testing.T, g *Guard, version int, load func(context.Context) (string, error), of func(string) V,
) *release {
	t.Helper()
	r := &release{guard: g, version: version}
	c, err := NewCache(g, CacheConfig[int, V]{
		Name: "thing", Version: version, Tags: func(int, V) []string { return []string{"things"} },
		Load: func(ctx context.Context, _ int) (v V, err error) {
			r.loads.Add(1)
			name, err := load(ctx)
			if err == nil {
				v = of(name)
			}
			return v, err
		},
	})
	expect.Must(t, err)
	ctx := context.Background()
	r.get = func(id int) (string, error) {
		v, err := c.Get(ctx, id)
		return v.text(), err
	}
	r.getMany = func(ids ...int) (map[int]string, error) {
		found, err := c.GetMany(ctx, ids)
		texts := make(map[int]string)
		for id, v := range found {
			texts[id] = v.text()
		}
		return texts, err
	}
	r.put = func(id int, write func(context.Context) (string, error)) error {
		return c.Put(ctx, id, func(ctx context.Context) (V, error) {
			name, err := write(ctx)
			return of(name), err
		})
	}
	r.invalidate = func(ids ...int) error { return c.Invalidate(ctx, ids...) }
	r.all = func() error { return c.InvalidateAll(ctx) }
	return r
}

// rollout makes a fleet's first three instances run a program without a version, version 1 and version 2.
func rollout(t *testing.T, f *fleet, load func(context.Context) (string, error)) []*release {
	t.Helper()
	return []*release{
		newRelease(t, f.guards[0], 0, load, makePlain), newRelease(t, f.guards[1], 1, load, makePriced),
		newRelease(t, f.guards[2], 2, load, makeRenamed),
	}
}

const thingKey = "thing:1"

// steady has times that a machine does not exceed even if it stalls for a while.
var steady = Config{RedisTimeout: time.Minute, LeaseTTL: time.Minute, TTL: time.Hour, Jitter: off}

// steadyTier is steady with a local tier.
func steadyTier() Config {
	cfg := steady
	cfg.Local = LocalConfig{MaxEntries: 1000, TTL: time.Hour}
	return cfg
}

// expect gets a thing, and waits until it is stored if it was loaded.
func (r *release) expect(f *fleet, id int, name string) {
	f.t.Helper()
	got, err := r.get(id)
	expect.Equal(f.t, fmt.Sprintf("thing %d of version %d", id, r.version), fmt.Sprint(got, " ", err), name+" <nil>")
	f.stored()
}

// value is the key of the thing's value.
func (r *release) value(id int) string {
	return r.guard.keys.ValueKey(fmt.Sprint("thing:", id)) + protocol.VersionSlot(r.version)
}

// async gets thing 1 in the background.
func (r *release) async() <-chan reply[string] {
	c := make(chan reply[string], 1)
	go func() { // owner: the test; ends with the Get; joined by receiving
		v, err := r.get(1)
		c <- reply[string]{v, err}
	}()
	return c
}

// awaitInboxes waits until n processes are registered in a lease, or an intent.
func (f *fleet) awaitInboxes(key string, n int) {
	f.t.Helper()
	if f.deaf {
		return
	}
	redistest.Await(f.t, fmt.Sprintf("%d processes wait", n), func() bool {
		fields, err := f.redis.HKeys(context.Background(), key).Result()
		registered := 0
		for _, field := range fields {
			if len(field) > 6 && field[:6] == "inbox:" {
				registered++
			}
		}
		return err == nil && registered == n
	})
}

// loadedSince is how many loads there were since the last call, by release.
func loadedSince(all []*release) (loads []int64) {
	for _, r := range all {
		loads = append(loads, r.loads.Swap(0))
	}
	return loads
}

// entry is what Redis has for the key at valueKey.
func (f *fleet) entry(key, valueKey string) protocol.Entry {
	f.t.Helper()
	raw, err := f.redis.Get(context.Background(), valueKey).Bytes()
	expect.Must(f.t, err)
	e, err := protocol.DecodeEntry(key, raw)
	expect.Must(f.t, err)
	return e
}

// orAbsent is a load of a row that treats an empty one as absent.
func (r *row) orAbsent(ctx context.Context) (string, error) {
	v, err := r.load(ctx)
	return v, errors.Join(err, map[bool]error{true: ErrNotFound}[v == ""])
}

var arenasOfVersions = map[string]func(*testing.T) arena{"standalone": standalone, "cluster": onCluster}

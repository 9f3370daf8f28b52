package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// rack is a source of things that tells how it was asked.
type rack struct {
	mu      sync.Mutex
	many    []int // keys of each call of LoadMany
	one     atomic.Int64
	begun   chan struct{}
	release chan struct{} // nil: calls return at once
	poison  int           // LoadMany fails if asked for it, and Load too
}

var errPoison = errors.New("this row cannot be read")

func (r *rack) config(batch int) CacheConfig[int, thing] {
	return CacheConfig[int, thing]{
		Name: "thing", Batch: batch,
		Load: func(ctx context.Context, id int) (thing, error) {
			r.one.Add(1)
			if err := r.hold(ctx); err != nil {
				return thing{}, err
			}
			if id == r.poison {
				return thing{}, errPoison
			}
			return thing{ID: id}, nil
		},
		LoadMany: func(ctx context.Context, ids []int) (map[int]thing, error) {
			r.mu.Lock()
			r.many = append(r.many, len(ids))
			r.mu.Unlock()
			if r.begun != nil {
				r.begun <- struct{}{}
			}
			if err := r.hold(ctx); err != nil {
				return nil, err
			}
			if r.poison != 0 && slices.Contains(ids, r.poison) {
				return nil, errPoison
			}
			all := make(map[int]thing, len(ids))
			for _, id := range ids {
				all[id] = thing{ID: id}
			}
			return all, nil
		},
	}
}

// hold waits for release, if there is one.
func (r *rack) hold(ctx context.Context) error {
	if r.release == nil {
		return nil
	}
	select {
	case <-r.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *rack) calls() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.many)
}

// farFleet is an instance whose Redis is 400 ms away, so Gets that begin within that time miss together, also where the machine stands still for 300.
func farFleet(t *testing.T, cfg Config) *fleet {
	t.Helper()
	cfg.RedisTimeout = bearing
	far := redistest.StartFar(t, shared.Addr(), 400*time.Millisecond)
	return newFleetOn(t, shared.Client(t), cfg, far.Client(t)).listening()
}

// getAll gets the keys from 1 to n at once.
func getAll(ctx context.Context, c *Cache[int, thing], n int) []<-chan reply[thing] {
	all := make([]<-chan reply[thing], n)
	for i := range all {
		all[i] = asyncThing(ctx, c, i+1)
	}
	return all
}

func TestAThousandMissesOfAThousandKeysAreTenQueries(t *testing.T) {
	t.Parallel()
	f, db := farFleet(t, Config{}), new(rack)
	c := newCaches(t, f, db.config(100))[0]
	for i, r := range getAll(context.Background(), c, 1000) {
		want(t, r, thing{ID: i + 1})
	}
	expect.Equal(t, "queries", fmt.Sprint(db.calls(), db.one.Load()), fmt.Sprint(slices.Repeat([]int{100}, 10), 0))
	expect.Equal(t, "loads by key", f.events.loads.Load(), 1000)
	f.stored()
	got := must(c.GetMany(context.Background(), []int{1, 500, 1000}))
	expect.Equal(t, "stored", fmt.Sprint(len(got), db.calls()), fmt.Sprint(3, slices.Repeat([]int{100}, 10)))
}

func TestALoneMissWaitsForNobodyAndCallsLoad(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{}), new(rack)
	c := newCaches(t, f, db.config(100))[0]
	expect.Equal(t, "value", must(c.Get(context.Background(), 7)), thing{ID: 7})
	expect.Equal(t, "queries", fmt.Sprint(db.calls(), db.one.Load()), "[] 1")
}

func TestAThousandCallersOfABatchThatAllGiveUpEndIt(t *testing.T) {
	t.Parallel()
	f, db := farFleet(t, Config{}), &rack{begun: make(chan struct{}, 100), release: make(chan struct{})}
	c := newCaches(t, f, db.config(100))[0]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	all := getAll(ctx, c, 1000)
	<-db.begun
	cancel()
	for _, r := range all {
		if r := <-r; !errors.Is(r.err, context.Canceled) {
			t.Fatal(r)
		}
	}
	redistest.Await(t, "no load and no slot is left", func() bool {
		s := f.guards[0].Stats()
		return s.Loading == 0 && s.Waiting == 0 && f.guards[0].flights.Count(nil).Running == 0
	})
	close(db.release)
	expect.Equal(t, "the next Get", must(c.Get(context.Background(), 1)), thing{ID: 1})
}

func TestOneWhoLeavesABatchTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	f, db := farFleet(t, Config{}), &rack{begun: make(chan struct{}, 100), release: make(chan struct{})}
	c := newCaches(t, f, db.config(100))[0]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leaves := asyncThing(ctx, c, 100)
	stay := getAll(context.Background(), c, 20)
	<-db.begun
	cancel()
	if r := <-leaves; !errors.Is(r.err, context.Canceled) {
		t.Fatal(r)
	}
	close(db.release)
	for i, r := range stay {
		want(t, r, thing{ID: i + 1})
	}
}

func TestAKeyThatCannotBeLoadedFailsNoOtherOfItsBatch(t *testing.T) {
	t.Parallel()
	f, db := farFleet(t, Config{MaxLoads: 2}), &rack{poison: 13}
	c := newCaches(t, f, db.config(100))[0]
	for i, r := range getAll(context.Background(), c, 20) {
		if i+1 == db.poison {
			if r := <-r; !errors.Is(r.err, errPoison) {
				t.Error(r)
			}
			continue
		}
		want(t, r, thing{ID: i + 1})
	}
	expect.Equal(t, "queries of many", len(db.calls()), 1)
	expect.Equal(t, "queries of one", db.one.Load(), 20)
	redistest.Await(t, "all slots are free", func() bool { return f.guards[0].Stats().Loading == 0 })
	s := f.guards[0].loaders.limits
	for range 2 {
		if s.Try(context.Background(), f.guards[0].loaders.need(&load{policy: &c.policy})).IsNone() {
			t.Error("a slot was not given back")
		}
	}
}

func TestThingsThatABatchDoesNotReturnDoNotExist(t *testing.T) {
	t.Parallel()
	f, db := farFleet(t, Config{}), new(rack)
	cfg := db.config(100)
	all := cfg.LoadMany
	cfg.LoadMany = func(ctx context.Context, ids []int) (map[int]thing, error) {
		found, err := all(ctx, ids)
		delete(found, 3)
		return found, err
	}
	c := newCaches(t, f, cfg)[0]
	for i, r := range getAll(context.Background(), c, 5) {
		if i+1 == 3 {
			if r := <-r; !errors.Is(r.err, ErrNotFound) {
				t.Error(r)
			}
			continue
		}
		want(t, r, thing{ID: i + 1})
	}
}

func TestABatchTakesOneSlotAndGrowsWhileItWaitsForIt(t *testing.T) {
	t.Parallel()
	f, db := farFleet(t, Config{MaxLoads: 1}), new(rack) // the further away, the longer a batch waits for a late lease
	c := newCaches(t, f, db.config(100))[0]
	other := newSource("other")
	first := async(f.guards[0], "first", other.load)
	<-other.begun
	all := getAll(context.Background(), c, 50)
	f.awaitWaiting(0, 51)
	redistest.Await(t, "all have their leases", func() bool {
		leases, err := f.redis.Keys(context.Background(), f.guards[0].cfg.Prefix+":{thing:*}:lease").Result()
		return err == nil && len(leases) == 50
	})
	other.release <- struct{}{}
	want(t, first, "other")
	for i, r := range all {
		want(t, r, thing{ID: i + 1})
	}
	expect.Equal(t, "queries", fmt.Sprint(db.calls(), db.one.Load()), "[50] 0")
}

func TestInstancesThatMissTheSameKeysShareTheirBatches(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 2, Config{}).listening(), &rack{begun: make(chan struct{}, 100), release: make(chan struct{})}
	caches := newCaches(t, f, db.config(100))
	here := getAll(context.Background(), caches[0], 30)
	<-db.begun
	there := getAll(context.Background(), caches[1], 30)
	f.awaitWaiting(1, 30)
	close(db.release)
	for i := range here {
		want(t, here[i], thing{ID: i + 1})
		want(t, there[i], thing{ID: i + 1})
	}
	sum := db.one.Load()
	for _, n := range db.calls() {
		sum += int64(n)
	}
	expect.Equal(t, "keys that were loaded", sum, 30)
}

func TestALoaderAndATransactionLoadOnTheirOwn(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 1, Config{MaxLoads: 1}), new(rack)
	c := newCaches(t, f, db.config(100))[0]
	v, err := Get(context.Background(), f.guards[0], "outer", func(ctx context.Context) (string, error) { // has the only slot
		v, err := c.Get(ctx, 1)
		return fmt.Sprint(v.ID), err
	})
	expect.Equal(t, "value", fmt.Sprint(v, " ", err), "1 <nil>")
	expect.Equal(t, "queries", fmt.Sprint(db.calls(), db.one.Load()), "[] 1")
}

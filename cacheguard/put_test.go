package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

// rows are Caches of a row that has the key 1.
func rows(t *testing.T, f *fleet, r *row) []*Cache[int, string] {
	t.Helper()
	return newCaches(t, f, CacheConfig[int, string]{
		Name: "row", Load: func(ctx context.Context, _ int) (string, error) { return r.load(ctx) },
	})
}

const rowKey = "row:1"

// cached is what a Cache has of the row, which it must not load.
func cached(t *testing.T, c *Cache[int, string]) (string, Outcome) {
	t.Helper()
	v, how, err := c.ask(context.Background(), 1)
	if err != nil || how == Loaded {
		t.Errorf("%q, %v, %v", v, how, err)
	}
	return v, how
}

// saves writes the value, as Put wants it.
func (r *row) saves(value string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return value, r.write(value)(ctx) }
}

func TestTheFirstReadAfterAPutIsAHitEverywhere(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(*testing.T) arena{"standalone": standalone, "cluster": onCluster}, func(t *testing.T, _ string, build func(*testing.T) arena) {
		f := newFleet(t, build(t), 2, Config{Jitter: -1, TTL: time.Hour})
		db := newRow("old")
		caches := rows(t, f, db)
		for i := range 20 {
			want := fmt.Sprint("v", i)
			expect.Equal(t, "Put", caches[i%2].Put(context.Background(), 1, db.saves(want)), nil)
			for _, c := range caches {
				v, _ := cached(t, c)
				expect.Equal(t, "value", v, want)
			}
			expect.Equal(t, "intent", f.exists(f.intent(rowKey)), false)
			expect.Equal(t, "lease", f.exists(f.lease(rowKey)), false)
		}
		ttl, err := f.redis.PTTL(context.Background(), f.value(rowKey)).Result()
		expect.Equal(t, "has a TTL", err == nil && ttl > 50*time.Minute && ttl <= time.Hour, true)
	})
}

func TestWhatAPutStoresHasTheTagsAndTheTTLThatWriteSets(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{Jitter: -1, TTL: time.Hour})
	db := newRow("old")
	caches := rows(t, f, db)
	expect.Equal(t, "Put", caches[0].Put(context.Background(), 1, func(ctx context.Context) (string, error) {
		SetTags(ctx, "shoes")
		SetTTL(ctx, time.Minute)
		return db.saves("new")(ctx)
	}), nil)
	v, _ := cached(t, caches[1])
	expect.Equal(t, "value", v, "new")
	ttl, err := f.redis.PTTL(context.Background(), f.value(rowKey)).Result()
	expect.Equal(t, "has the TTL", err == nil && ttl > 50*time.Second && ttl <= time.Minute, true)
	_ = db.write("newest")(context.Background()) // nil
	expect.Equal(t, "InvalidateTags", f.guards[1].InvalidateTags(context.Background(), "shoes"), nil)
	v, err = caches[0].Get(context.Background(), 1)
	expect.Equal(t, "value", v, "newest")
	expect.Equal(t, "Get", err, nil)
}

func TestAPutWhoseWriteSetsNoTTLToLiveStoresNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{TTL: time.Hour})
	db := newRow("old")
	expect.Equal(t, "Put", rows(t, f, db)[0].Put(context.Background(), 1, func(ctx context.Context) (string, error) {
		SetTTL(ctx, 0)
		return db.saves("new")(ctx)
	}), nil)
	expect.Equal(t, "stored", f.exists(f.value(rowKey)), false)
}

func TestAPutThatMayNotStoreInvalidatesAllTheSame(t *testing.T) {
	t.Parallel()
	broken := errors.New("constraint")
	type example struct {
		cfg Config
		do  func(f *fleet, cancel func()) error // after the row was written; nil: nothing
		err error                               // nil: none
	}
	expect.Each(t, map[string]example{
		"write fails":            {do: func(*fleet, func()) error { return broken }, err: broken},
		"invalidated in between": {do: func(f *fleet, _ func()) error { mustInvalidate(f.t, f.guards[1], rowKey); return nil }},
		"the intent is lost":     {do: func(f *fleet, _ func()) error { return f.redis.Del(context.Background(), f.intent(rowKey)).Err() }},
		"the generation is lost": {do: func(f *fleet, _ func()) error { return f.redis.Del(context.Background(), f.lease(rowKey)).Err() }},
		"another writer's intent stands": {cfg: Config{WaitTimeout: time.Millisecond}, do: func(f *fleet, _ func()) error {
			g := f.guards[1]
			return g.keys.BeginUpdate(g.keys.ValueKey(rowKey), "another", g.writes.Notice(rowKey), 0).
				Run(context.Background(), f.redis).Err()
		}},
		"another writer's intent has expired since": {do: func(f *fleet, _ func()) error {
			return f.redis.HSet(context.Background(), f.intent(rowKey), "writer:dead", "1000 500", "holder:dead", "1 x").Err()
		}},
		"the context ended":     {do: func(_ *fleet, cancel func()) error { cancel(); return nil }},
		"it is too large":       {cfg: Config{MaxValueBytes: 4}},
		"values are not stored": {cfg: Config{TTL: -1}},
	}, func(t *testing.T, name string, c example) {
		f := newFleet(t, standalone(t), 2, c.cfg)
		db := newRow("old")
		cache := rows(t, f, db)[0]
		mustGet(t, f.guards[1], rowKey, db.load)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		err := cache.Put(ctx, 1, func(context.Context) (_ string, err error) {
			db.value.Store("new")
			if c.do != nil {
				err = c.do(f, cancel)
			}
			return "wrong", err
		})
		expect.ErrorIs(t, err, c.err)
		expect.Equal(t, "stored", f.exists(f.value(rowKey)), false)
		v, _ := Get(context.Background(), f.guards[1], rowKey, func(ctx context.Context) (string, error) {
			SetTTL(ctx, 0)
			return db.load(ctx)
		})
		if name != "another writer's intent stands" {
			expect.Equal(t, "value", v, "new")
		}
	})
}

func TestAPutThatPanicsStoresNothingAndEnds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	db := newRow("old")
	cache := rows(t, f, db)[0]
	func() {
		defer func() { expect.Equal(t, "panic", recover(), any("boom")) }()
		_ = cache.Put(context.Background(), 1, func(context.Context) (string, error) { panic("boom") })
	}()
	expect.Equal(t, "intent", f.exists(f.intent(rowKey)), false)
	f.expectUntouched(rowKey, "old", db)
}

func TestAPutThatLostItsLockStoresNothing(t *testing.T) {
	t.Parallel()
	a := standalone(t)
	f := newFleet(t, a, 1, Config{LeaseTTL: brisk, UpdateTimeout: brisk})
	f.guards = append(f.guards, newGuard(t, a.client(t), Config{Prefix: f.guards[0].cfg.Prefix})) // whose Put has all the time it needs
	db := newRow("old")
	caches := rows(t, f, db)
	err := begins(t, func(begin func()) error {
		return caches[0].Put(context.Background(), 1, func(ctx context.Context) (string, error) {
			begin()
			<-ctx.Done() // UpdateTimeout
			expect.ErrorIs(t, caches[1].Put(context.Background(), 1, db.saves("new")))
			return "slow", nil
		})
	})
	expect.ErrorIs(t, err, rwlock.ErrLeaseLost)
	f.expectUntouched(rowKey, "new", db)
}

func TestALateCopyOfAPutStoresNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{})
	s := &putStage{stage: stage{fleet: f, key: rowKey, token: "first" + fmt.Sprintf("%026d", 0)}}
	for step := range writerSteps {
		expect.Must(t, s.put(step+1, none))
	}
	expect.Equal(t, "stored", s.cached(), newOne)
	db := newRow("old")
	expect.Equal(t, "another Put", rows(t, f, db)[0].Put(ctx, 1, db.saves("newest")), nil)
	generation := s.generation
	for _, step := range []int{2, 5} { // their copies come, and those who sent them are gone
		expect.Must(t, s.put(step, none))
		s.generation = generation
	}
	expect.Equal(t, "the old value is stored", s.cached(), nothing)
}

func TestAPutWhoseValueRedisHasNoRoomForInvalidates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a, _ := onServer(t)
	f := newFleet(t, a, 1, Config{LeaseTTL: time.Minute})
	db := newRow("old")
	cache := rows(t, f, db)[0]
	mustGet(t, f.guards[0], rowKey, db.load)
	full := func(limit string) {
		expect.Must(t, f.redis.ConfigSet(ctx, "maxmemory", limit).Err())
	}
	err := cache.Put(ctx, 1, func(context.Context) (string, error) {
		full("1")
		db.value.Store("new")
		return "new", nil
	})
	full("0")
	expect.Equal(t, "Put", err, nil)
	expect.Equal(t, "unstorable", f.events.unstorable.Load(), 1)
	expect.Equal(t, "intent", f.exists(f.intent(rowKey)), false)
	expect.Equal(t, "pending", cache.Stats().Pending, 0)
	f.expectUntouched(rowKey, "new", db)
}

func TestAGetThatWaitsForAPutHasItsValueWithoutALoad(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{LeaseTTL: time.Minute}).listening()
	db := newRow("old")
	caches := rows(t, f, db)
	began, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- caches[0].Put(context.Background(), 1, func(ctx context.Context) (string, error) {
			close(began)
			<-release
			return db.saves("new")(ctx)
		})
	}()
	<-began
	waiting := make(chan string, 1)
	go func() {
		v, _ := cached(t, caches[1])
		waiting <- v
	}()
	redistest.Await(t, "it is registered", func() bool {
		fields, err := f.redis.HKeys(context.Background(), f.intent(rowKey)).Result()
		return err == nil && len(fields) == 3 // the writer, its instance, and an inbox
	})
	close(release)
	expect.Equal(t, "Put", <-done, nil)
	expect.Equal(t, "the waiter", <-waiting, "new")
}

func TestAPutReachesLocalTiers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, withLocal)
	db := newRow("old")
	caches := rows(t, f.listening(), db)
	for _, c := range caches {
		redistest.Await(t, "the tier has the value", func() bool {
			v, how, err := c.ask(context.Background(), 1)
			return v == "old" && how == Local && err == nil
		})
	}
	expect.Equal(t, "Put", caches[0].Put(context.Background(), 1, db.saves("new")), nil)
	here, _ := cached(t, caches[0])
	expect.Equal(t, "here", here, "new")
	f.heard(1)
	there, _ := cached(t, caches[1])
	expect.Equal(t, "there", there, "new")
}

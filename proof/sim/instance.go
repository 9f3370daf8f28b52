package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// store is what a fleet caches with: cacheguard, or what the tests have in its place to see that the checker notices.
type store interface {
	get(ctx context.Context, row int) (int64, error)
	getMany(ctx context.Context, rows []int) (map[int]int64, error)
	invalidate(ctx context.Context, rows []int) error
	invalidateTags(ctx context.Context, tags ...int) error
	invalidateAll(ctx context.Context, kind bool) error
	update(ctx context.Context, row int, write func(context.Context) error) error
	put(ctx context.Context, row int, write func(context.Context) (int64, error)) error
	transact(ctx context.Context, rows []int, tags []int, write body) error
	warm(ctx context.Context, rows []int) error
	serve(all bool) // whether the cache may serve all keys, or only those with even numbers
	close() error
}

// instance is a process of the service.
type instance struct {
	name string
	net  *network
	rdb  *redis.Client
	store
	dead bool // guarded by the truth's mutex
}

// body is what a transaction does. It reads with a context of its own, and may name more rows.
type body func(within context.Context, also func(rows ...int) error) error

type load func(ctx context.Context, row int) (int64, error)

// guarded is the store with cacheguard.
type guarded struct {
	guard  *cacheguard.Guard
	cache  *cacheguard.Cache[int, int64]
	partly atomic.Bool // it serves only some keys
}

var errUnserved = errors.New("this row is not served now")

func openGuarded(rdb *redis.Client, p plan, name string, load load) (store, error) {
	cfg := cacheguard.Config{Prefix: "sim", Instance: name, TTL: time.Hour, RedisTimeout: redisTimeout, LeaseTTL: leaseTTL, UpdateTimeout: leaseTTL}
	if p.local {
		cfg.Local = cacheguard.LocalConfig{MaxEntries: 1000, TTL: localTTL, MaxLag: p.maxLag}
	}
	if p.late {
		cfg.HedgeAfter = 2 * time.Millisecond
	}
	if p.narrow {
		cfg.MaxLoads = 1
	}
	g := new(guarded)
	cfg.Gate = func(_ context.Context, key string) error {
		if g.partly.Load() && key[len(key)-1]%2 != 0 {
			return errUnserved
		}
		return nil
	}
	var err error
	if g.guard, err = cacheguard.New(rdb, cfg); err != nil {
		return nil, err
	}
	kind := cacheguard.CacheConfig[int, int64]{
		Name: "row", Tags: func(row int, version int64) []string {
			return []string{tagName(row % tags), tagName(tags + int(version%moving))}
		}, Load: load,
	}
	if p.together {
		kind.LoadMany = load.many
	}
	if p.patient {
		kind.TTL, kind.StaleFor, kind.Patience = shortTTL, time.Hour, longestLoad/2
	}
	g.cache, err = cacheguard.NewCache(g.guard, kind)
	return g, err
}

// many loads rows in one call, which is no snapshot.
func (l load) many(ctx context.Context, rows []int) (map[int]int64, error) {
	got := make(map[int]int64, len(rows))
	for _, row := range rows {
		version, err := l(ctx, row)
		if err != nil {
			return nil, err
		}
		got[row] = version
	}
	return got, nil
}

func tagName(tag int) string { return fmt.Sprint("tag", tag) }

func namesOf(tags []int) (names []string) {
	for _, tag := range tags {
		names = append(names, tagName(tag))
	}
	return names
}

func (g *guarded) get(ctx context.Context, row int) (int64, error) { return g.cache.Get(ctx, row) }

func (g *guarded) warm(ctx context.Context, rows []int) error {
	_, err := g.cache.Warm(ctx, slices.Values(rows), cacheguard.WarmConfig{Batch: 2})
	return err
}

func (g *guarded) serve(all bool) {
	g.partly.Store(!all)
}

func (g *guarded) getMany(ctx context.Context, rows []int) (map[int]int64, error) {
	return g.cache.GetMany(ctx, rows)
}

func (g *guarded) invalidate(ctx context.Context, rows []int) error {
	return g.cache.Invalidate(ctx, rows...)
}

func (g *guarded) invalidateTags(ctx context.Context, tags ...int) error {
	return g.guard.InvalidateTags(ctx, namesOf(tags)...)
}

func (g *guarded) invalidateAll(ctx context.Context, kind bool) error {
	if kind {
		return g.cache.InvalidateAll(ctx)
	}
	return g.guard.InvalidateAll(ctx)
}

func (g *guarded) update(ctx context.Context, row int, write func(context.Context) error) error {
	return g.cache.Update(ctx, row, write)
}

func (g *guarded) put(ctx context.Context, row int, write func(context.Context) (int64, error)) error {
	return g.cache.Put(ctx, row, write)
}

func (g *guarded) transact(ctx context.Context, rows, tags []int, write body) error {
	changes := g.cache.Changes(rows...)
	changes.Tags = namesOf(tags)
	intent, err := g.guard.Intend(ctx, changes)
	if err != nil {
		return err
	}
	err = write(intent.Context(ctx), func(rows ...int) error { return intent.Also(ctx, g.cache.Changes(rows...)) })
	if err != nil {
		_ = intent.Done(ctx) // nothing was written
		return err
	}
	return intent.Done(ctx)
}

func (g *guarded) close() error { return g.guard.Close() }

// loading is the load of a row, which takes its time before and after it reads the database.
func loading(t *truth, random func() *rand.Rand) load {
	return func(ctx context.Context, row int) (int64, error) {
		r := random()
		if err := sleep(ctx, rand64(r, longestLoad/2)); err != nil {
			return 0, err
		}
		version := t.read(row)
		if tx, within := ctx.Value(txKey{}).(*tx); within {
			if tx.over.Load() {
				return 0, errOver
			}
			version += uncommitted
		}
		return version, sleep(ctx, rand64(r, longestLoad/2))
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

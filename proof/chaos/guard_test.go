package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
	"github.com/cacheguard/go/semaphore"
)

const (
	rows   = 16 // keys of the Guard itself
	things = 16
	quiet  = 8  // keys that are invalidated seldom, so that their loads can be counted
	blocks = 10 // of the keys that are read together; those of one are invalidated together
)

// value is what is cached.
type value struct {
	N       int64
	ID      int `json:",omitempty"` // of a thing
	Tags    uint
	By      string `json:",omitempty"`
	Version int    `json:",omitempty"`
}

// opened is a Guard and its kinds.
type opened struct {
	name    string
	version int
	guard   *cacheguard.Guard
	limiter *semaphore.Limiter
	things  *cacheguard.Cache[int, value]
	bulk    *cacheguard.Cache[int, value]
	quiet   *cacheguard.Cache[int, value]
	crowd   *cacheguard.Cache[int, value] // of things, by thousands
	births  *cacheguard.Cache[int64, int64]
	views   *cacheguard.Cache[int, value] // of things
	pages   *middleware.Cache

	quietCrowd *cacheguard.Cache[int, value] // of quiet ones

	off  atomic.Int64 // since when the cache is turned off for some keys; 0: it is not
	shut atomic.Pointer[func(key string) bool]
}

// close closes the Guard, and then the Limiter.
func (o *opened) close() error { return errors.Join(o.guard.Close(), o.limiter.Close()) }

// outcomes of the keys of a call, which the hook finds in its context.
type outcomes struct {
	mu  sync.Mutex
	all map[string]cacheguard.Outcome
}

type outcomesKey struct{}

func withOutcomes(ctx context.Context) (context.Context, *outcomes) {
	o := &outcomes{all: make(map[string]cacheguard.Outcome)}
	return context.WithValue(ctx, outcomesKey{}, o), o
}

func (o *outcomes) of(key string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.all[key])
}

func tagsOf(bits uint) (all []string) {
	for i := range tags {
		if bits&(1<<i) != 0 {
			all = append(all, tagOf(i))
		}
	}
	return all
}

// open opens a Guard. Every second place has a tier, which keeps values for minutes; every other second place serves stale values.
func (w *worker) open() *opened {
	o := &opened{name: fmt.Sprint(w.name, ".", w.opens.Add(1)), version: 1 + w.index%2}
	var err error
	if o.limiter, err = semaphore.NewLimiter(w.rdb.(semaphore.Redis), "loads", semaphore.Config{
		Prefix: "chaos", Instance: w.name, Permits: 24, TTL: lease, RedisTimeout: w.wait,
	}); err != nil {
		w.Fatal(err)
	}
	cfg := cacheguard.Config{
		Prefix: "chaos", Instance: w.name, TTL: w.ttl, LeaseTTL: lease, RedisTimeout: w.wait, NegativeTTL: w.ttl, MaxLoads: 16, Limiter: o.limiter,
		Gate: o.gate,
		Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventGet, func(ctx context.Context, e cacheguard.Event) {
			if all, ok := ctx.Value(outcomesKey{}).(*outcomes); ok {
				all.mu.Lock()
				all.all[e.Key] = e.Outcome
				all.mu.Unlock()
			}
		})},
	}
	if w.index%2 == 1 {
		cfg.HedgeAfter = w.wait / 10 // where loads are counted, longer than a process stands still unnoticed
	}
	if w.index%4 >= 2 {
		cfg.Local = cacheguard.LocalConfig{MaxEntries: 20_000, TTL: 10 * time.Minute}
	}
	if w.index%4%3 == 0 {
		cfg.StaleFor, cfg.EarlyRefresh = w.ttl, 1
	}
	patient := cfg.StaleFor / 1000 // 0: there is nothing stale
	var errs [9]error
	o.guard, errs[0] = cacheguard.New(w.rdb.(cacheguard.Redis), cfg)
	thing := cacheguard.CacheConfig[int, value]{
		Name: "thing", Version: o.version, Tags: func(_ int, v value) []string { return tagsOf(v.Tags) }, Patience: patient,
		Load: func(ctx context.Context, id int) (value, error) {
			if rand.N(4) == 0 { // so that some are stale
				cacheguard.SetTTL(ctx, rand.N(100*time.Millisecond))
			}
			v, err := w.load(ctx)
			v.ID, v.Version = id, o.version
			return v, err
		},
	}
	o.things, errs[1] = cacheguard.NewCache(o.guard, thing)
	thing.LoadMany = func(ctx context.Context, ids []int) (map[int]value, error) { return w.loadThousands(ctx, o, ids) }
	o.crowd, errs[7] = cacheguard.NewCache(o.guard, thing)
	o.bulk, errs[2] = cacheguard.NewCache(o.guard, cacheguard.CacheConfig[int, value]{
		Name: "bulk", Load: func(ctx context.Context, _ int) (value, error) { return w.loadRow(ctx) }, // GetMany may load a single thing
		LoadMany: func(ctx context.Context, ids []int) (map[int]value, error) {
			v, err := w.loadRow(ctx)
			all := make(map[int]value, len(ids))
			for _, id := range ids {
				all[id] = v
			}
			return all, err
		},
	})
	quietly := cacheguard.CacheConfig[int, value]{
		Name: "quiet", TTL: 200 * time.Millisecond, StaleFor: -1, EarlyRefresh: -1, NoLocal: w.index%4 == 2,
		Load: func(ctx context.Context, id int) (value, error) {
			all, err := w.loadQuietly(ctx, o, id)
			return all[id], err
		},
	}
	o.quiet, errs[3] = cacheguard.NewCache(o.guard, quietly)
	quietly.LoadMany = func(ctx context.Context, ids []int) (map[int]value, error) { return w.loadQuietly(ctx, o, ids...) }
	o.quietCrowd, errs[8] = cacheguard.NewCache(o.guard, quietly)
	o.births, errs[4] = cacheguard.NewCache(o.guard, cacheguard.CacheConfig[int64, int64]{
		Name: "birth", AbsentTags: func(int64) []string { return []string{"births"} },
		Load: func(ctx context.Context, id int64) (int64, error) {
			born, err := w.truth.born(ctx)
			<-time.After(rand.N(5 * time.Millisecond))
			if err == nil && id >= born {
				err = fmt.Errorf("thing %d: %w", id, cacheguard.ErrNotFound)
			}
			return id, err
		},
	})
	o.views, errs[5] = cacheguard.NewCache(o.guard, cacheguard.CacheConfig[int, value]{
		Name: "view",
		Load: func(ctx context.Context, id int) (value, error) {
			v, err := o.things.Get(ctx, id)
			<-time.After(rand.N(5 * time.Millisecond))
			return value{N: v.N}, err
		},
	})
	o.pages, errs[6] = w.newPages(o.guard)
	for _, err := range errs {
		if err != nil {
			w.Fatal(err)
		}
	}
	return o
}

// load reads the database, which takes its time, and gives what it has read any tags.
func (w *worker) load(ctx context.Context) (value, error) {
	from := now()
	n, err := w.truth.read(ctx)
	<-time.After(rand.N(10 * time.Millisecond))
	v := value{N: n, Tags: rand.UintN(1<<tags) & rand.UintN(1<<tags)}
	w.note(event{Kind: loads, Guard: w.name, N: n, Tags: v.Tags, From: from})
	return v, err
}

// loadRow is the load of a key of the Guard itself.
func (w *worker) loadRow(ctx context.Context) (value, error) {
	v, err := w.load(ctx)
	cacheguard.SetTags(ctx, tagsOf(v.Tags)...)
	if ctx.Value(transaction{}) != nil {
		v.By = "transaction"
	}
	return v, err
}

// loadQuietly notes the load, unless that belongs to one caller alone. Of thousands, some stand for those beside them.
func (w *worker) loadQuietly(ctx context.Context, o *opened, ids ...int) (map[int]value, error) {
	from, alone := now(), o.guard.Stats().Bypassed
	v, err := w.load(ctx)
	v.Tags = 0
	<-time.After(20 * time.Millisecond)
	if at := o.guard.Stats(); err == nil && ctx.Err() == nil && !alone && !at.Bypassed && at.Pending == 0 {
		for _, id := range ids {
			if id < quiet || id%100 == 0 {
				w.note(event{Kind: loaded, Guard: o.name, Key: o.quiet.Key(id), From: from, Many: len(ids)})
			}
		}
	}
	return each(v, ids), err
}

package scenario

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// written has hot keys written while many read them.
func written() Scenario {
	s := Scenario{
		Name: "written",
		About: "800 callers on 8 instances, each of whom asks every 200 ms (an open loop), for hot keys that are written now and then, by an instance that then invalidates, or that Puts the value; a load takes 80 ms. " +
			"\"waited\": Gets that took longer than 5 ms, for whatever reason; \"for a load\": those that began 5 ms and more before the load of their answer ended. Slices with and without writes take turns, \"beside quiet\" is the ratio of their p99. \"old\": Gets that began after an invalidation had " +
			"returned, and got what was there before its write. \"write\" is what the invalidation takes, or the Put; where the writer stores by hand, it loads.",
		Metrics: []Metric{
			{Name: "waited", Unit: "%", Better: Lower, Main: true},
			{Name: "waited, quiet", Unit: "%", Better: Lower},
			{Name: "for a load", Unit: "%", Better: Lower},
			{Name: "p99", Unit: "ms", Better: Lower},
			{Name: "p99 beside quiet", Better: Lower},
			{Name: "loads by write", Better: Lower},
			{Name: "loads", Unit: "/s", Better: Lower},
			{Name: "old", Unit: "%", Better: Lower},
			{Name: "write p50", Unit: "ms", Better: Lower},
			{Name: "write p99", Unit: "ms", Better: Lower},
		},
	}
	for _, c := range []writing{{"200 keys, 100 writes a second", 200, 100}, {"1 key, 50 writes a second", 1, 50}} {
		s.Cases = append(s.Cases, Case{
			Name: c.name, Params: map[string]float64{"keys": float64(c.keys), "writes": float64(c.writes)},
			Smoke: true, Slow: true, Rounds: 3, Away: []time.Duration{datacenter, time.Millisecond},
			Entries: eachCache(rivals.Written, c.run),
		})
	}
	return s
}

// writing is how many keys are written, and how many writes there are a second.
type writing struct {
	name         string
	keys, writes int
}

// longWait is a wait that a caller notices.
const longWait = 5 * time.Millisecond

func (w writing) run(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	const instances, pairs = 8, 5
	t := newTable(w.keys, 80*time.Millisecond)
	setup := rivals.Setup{Redis: e.Options(), TTL: Forever, Entries: w.keys, Load: t.load, Waits: true}
	caches, err := openCaches(lib, setup, instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(caches)) }()
	length, quiet, busy, writes, loads := 3*e.For, newAnswers(), newAnswers(), newTimes(), int64(0)
	for range pairs {
		if err := t.readAll(ctx, caches); err != nil { // what was written last is loaded
			return nil, err
		}
		if err := t.readFor(ctx, caches, length, quiet); err != nil {
			return nil, err
		}
		before := t.db.loads.Load()
		writing := &openLoop{perSecond: w.writes, length: length, took: writes, ask: func(ctx context.Context, i int) error {
			return t.write(ctx, caches[rand.IntN(instances)], i%w.keys)
		}}
		var both sync.WaitGroup
		both.Go(func() { writing.run(ctx) }) // owner: run; stop: its length; joined below
		err := t.readFor(ctx, caches, length, busy)
		both.Wait()
		if err := errors.Join(err, writing.err()); err != nil {
			return nil, err
		}
		loads += t.db.loads.Load() - before
	}
	return Figures{
		"waited": busy.share(&busy.slow), "waited, quiet": quiet.share(&quiet.slow), "for a load": busy.share(&busy.forLoad), "old": busy.share(&busy.old),
		"p99": busy.took.at(99), "p99 beside quiet": busy.took.at(99) / quiet.took.at(99),
		"loads by write": float64(loads) / float64(writes.h.TotalCount()), "loads": float64(loads) / (pairs * length).Seconds(),
		"write p50": writes.at(50), "write p99": writes.at(99),
	}, nil
}

// answers are what Gets took and got.
type answers struct {
	took               *times
	slow, forLoad, old atomic.Int64
}

func newAnswers() *answers { return &answers{took: newTimes()} }

// share is how many of the answers that is, in per cent.
func (a *answers) share(of *atomic.Int64) float64 {
	return 100 * float64(of.Load()) / float64(a.took.h.TotalCount())
}

// table is rows of a slow database. A value begins with the row's version and the end of its load.
type table struct {
	db     *database
	began  time.Time
	keys   []string
	values [][]byte
	rows   map[string]*row
}

type row struct {
	value            []byte // but for its beginning
	written, settled atomic.Uint64
}

func newTable(n int, takes time.Duration) *table {
	t := &table{db: newDatabase(takes, 0), began: time.Now(), rows: make(map[string]*row)}
	t.keys, t.values = newKeys(n, Kibibyte)
	for i, key := range t.keys {
		t.rows[key] = &row{value: t.values[i]}
	}
	return t
}

const wordBytes = 8

// load reads the row at its beginning, so that a write in the meantime makes it old.
func (t *table) load(ctx context.Context, key string) ([]byte, error) {
	r := t.rows[key]
	value := slices.Clone(r.value)
	binary.BigEndian.PutUint64(value, r.written.Load())
	_, err := t.db.load(value)(ctx)
	binary.BigEndian.PutUint64(value[wordBytes:], uint64(time.Since(t.began)))
	return value, err
}

func (t *table) read(ctx context.Context, c rivals.Cache, k int, a *answers) error {
	key := t.keys[k]
	settled, began := t.rows[key].settled.Load(), time.Since(t.began)
	got, err := c.Get(ctx, key, func(ctx context.Context) ([]byte, error) { return t.load(ctx, key) })
	if err != nil || len(got) != Kibibyte {
		return Check(key, got, t.values[k], err)
	}
	if binary.BigEndian.Uint64(got) < settled {
		a.old.Add(1)
	}
	if time.Duration(binary.BigEndian.Uint64(got[wordBytes:]))-began > longWait {
		a.forLoad.Add(1)
	}
	return Check(key, got[2*wordBytes:], t.values[k][2*wordBytes:], nil)
}

// readFor asks for any of the keys, as many callers do.
func (t *table) readFor(ctx context.Context, caches []rivals.Cache, d time.Duration, a *answers) error {
	l := &openLoop{perSecond: 4000, random: true, length: d, late: longWait, took: a.took, ask: func(ctx context.Context, i int) error {
		return t.read(ctx, caches[i%len(caches)], rand.IntN(len(t.keys)), a)
	}}
	l.run(ctx)
	a.slow.Add(l.slow.Load())
	return errors.Join(l.err(), ctx.Err())
}

// readAll has every instance ask for every key.
func (t *table) readAll(ctx context.Context, caches []rivals.Cache) error {
	return Together(ctx, len(t.keys)*len(caches), func(ctx context.Context, i int) error {
		return t.read(ctx, caches[i%len(caches)], i/len(caches), newAnswers())
	})
}

func (t *table) write(ctx context.Context, c rivals.Cache, k int) error {
	r := t.rows[t.keys[k]]
	var version uint64
	commit := func(context.Context) ([]byte, error) {
		version = r.written.Add(1)
		value := slices.Clone(r.value) // no load ends with it
		binary.BigEndian.PutUint64(value, version)
		binary.BigEndian.PutUint64(value[wordBytes:], 0)
		return value, nil
	}
	var err error
	if putter, is := c.(rivals.Putter); is {
		err = putter.Put(ctx, t.keys[k], commit)
	} else {
		_, _ = commit(ctx) // always nil
		err = c.Invalidate(ctx, t.keys[k])
	}
	if err != nil {
		return err
	}
	for now := r.settled.Load(); now < version && !r.settled.CompareAndSwap(now, version); {
		now = r.settled.Load()
	}
	return nil
}

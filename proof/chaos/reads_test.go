package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cacheguard/go/cacheguard"
)

// notes notes a value that a call, begun at from, has got.
func (w *worker) notes(o *opened, key string, v value, how string, from int64) {
	e := event{Kind: got, Guard: o.name, Key: key, N: v.N, Tags: v.Tags, By: v.By, How: how, From: from, Version: o.version, Stored: o.version}
	if strings.HasPrefix(key, "thing:") {
		e.Stored = v.Version
	}
	w.note(e)
}

// impatient are some of the callers: they give up soon.
func impatient(ctx context.Context) (context.Context, context.CancelFunc) {
	if rand.N(5) == 0 {
		return context.WithTimeout(ctx, rand.N(20*time.Millisecond))
	}
	return context.WithCancel(ctx)
}

// one is a Get of one key.
func (w *worker) one(ctx context.Context, o *opened, key string, get func(context.Context) (value, error)) error {
	ctx, cancel := impatient(ctx)
	defer cancel()
	ctx, all := withOutcomes(ctx)
	from := now()
	v, err := get(ctx)
	if err != nil {
		return w.failed(ctx, o, key, from, err)
	}
	w.notes(o, key, v, all.of(key), from)
	return nil
}

func (w *worker) get(ctx context.Context, o *opened) error {
	row := someRow()
	return w.one(ctx, o, row, func(ctx context.Context) (value, error) { return cacheguard.Get(ctx, o.guard, row, w.loadRow) })
}

// getBriefly has values that expire soon, so that they are served stale and replaced, or that are not stored at all.
func (w *worker) getBriefly(ctx context.Context, o *opened) error {
	row := someRow()
	return w.one(ctx, o, row, func(ctx context.Context) (value, error) {
		return cacheguard.Get(ctx, o.guard, row, func(ctx context.Context) (value, error) {
			cacheguard.SetTTL(ctx, max(0, rand.N(130*time.Millisecond)-30*time.Millisecond))
			v, err := w.loadRow(ctx)
			v.By = "briefly"
			return v, err
		})
	})
}

// fetch judges what is cached, and looks at what is shown to the loader.
func (w *worker) fetch(ctx context.Context, o *opened) error {
	row, known := someRow(), rand.UintN(1<<tags)
	return w.one(ctx, o, row, func(ctx context.Context) (value, error) {
		from := now()
		v, _, err := cacheguard.Fetch(ctx, o.guard, row, cacheguard.Source[value]{
			Judge: func(value) cacheguard.Verdict {
				return []cacheguard.Verdict{cacheguard.Serve, cacheguard.Serve, cacheguard.Serve, cacheguard.Refresh, cacheguard.Replace}[rand.N(5)]
			},
			Load: func(ctx context.Context, old *value) (value, error) {
				if old != nil {
					w.notes(o, row, *old, "old", from)
				}
				v, err := w.loadRow(ctx)
				v.Tags |= known
				v.By = "fetch"
				return v, err
			},
			Tags: tagsOf(known), SkipLocal: rand.N(2) == 0, Unlimited: rand.N(2) == 0,
		})
		return v, err
	})
}

func (w *worker) getMany(ctx context.Context, o *opened) error {
	ctx, cancel := impatient(ctx)
	defer cancel()
	ctx, all := withOutcomes(ctx)
	keys := []string{someRow(), someRow(), someRow(), someRow()}
	from := now()
	found, err := cacheguard.GetMany(ctx, o.guard, keys, func(ctx context.Context, missing []string) (map[string]value, error) {
		v, err := w.loadRow(ctx)
		v.By = "many"
		loaded := make(map[string]value)
		for _, key := range missing {
			loaded[key] = v
		}
		return loaded, err
	})
	for key, v := range found {
		w.notes(o, key, v, all.of(key), from)
	}
	if err != nil || len(found) != len(slices.Compact(slices.Sorted(slices.Values(keys)))) {
		return w.failed(ctx, o, "", from, errors.Join(err, errors.New("not all were found")))
	}
	return nil
}

func (w *worker) getThing(ctx context.Context, o *opened) error {
	id := rand.N(things)
	return w.one(ctx, o, o.things.Key(id), func(ctx context.Context) (value, error) { return o.things.Get(ctx, id) })
}

// peekThing looks, and loads nothing: what it finds is as good as what a Get returns.
func (w *worker) peekThing(ctx context.Context, o *opened) error {
	id, from := rand.N(things), now()
	key := o.things.Key(id)
	v, how, err := o.things.Peek(ctx, id)
	switch {
	case errors.Is(err, cacheguard.ErrNotCached):
		return nil
	case err != nil:
		return w.failed(ctx, o, key, from, err)
	}
	w.notes(o, key, v, string(how), from)
	return nil
}

func (w *worker) getView(ctx context.Context, o *opened) error {
	id := rand.N(things)
	return w.one(ctx, o, o.views.Key(id), func(ctx context.Context) (value, error) { return o.views.Get(ctx, id) })
}

func (w *worker) getQuiet(ctx context.Context, o *opened) error {
	id := rand.N(quiet)
	return w.one(ctx, o, o.quiet.Key(id), func(ctx context.Context) (value, error) { return o.quiet.Get(ctx, id) })
}

// getTwice asks for keys that a Cache and the function Get both use. What the latter loads is bare, and so are its keys in the log.
func (w *worker) getTwice(ctx context.Context, o *opened) error {
	ctx, all := withOutcomes(ctx)
	id := w.bulk + rand.N(2)
	from, key, bare := now(), o.bulk.Key(id), rand.N(2) == 0
	get, noted := func() (value, error) { return o.bulk.Get(ctx, id) }, key
	if bare {
		noted = fmt.Sprint("bare:", id)
		get = func() (value, error) {
			return cacheguard.Get(ctx, o.guard, key, func(ctx context.Context) (value, error) {
				v, err := w.loadRow(ctx)
				v.By = "bare"
				return v, err
			})
		}
	}
	v, err := get()
	if err != nil {
		return w.failed(ctx, o, key, from, err)
	}
	w.notes(o, noted, v, all.of(key), from)
	return nil
}

// getBulk reads thousands of keys, and notes the oldest of each group that is invalidated together.
func (w *worker) getBulk(ctx context.Context, o *opened) error {
	ctx, all := withOutcomes(ctx)
	ids := make([]int, w.bulk)
	for i := range ids {
		ids[i] = i
	}
	from := now()
	found, err := o.bulk.GetMany(ctx, ids)
	if err != nil || len(found) != len(ids) {
		return w.failed(ctx, o, "bulk", from, errors.Join(err, errors.New("not all were found")))
	}
	type group struct {
		block int
		tags  uint
		how   string
	}
	oldest := make(map[group]value)
	for id, v := range found {
		g := group{id * blocks / w.bulk, v.Tags, all.of(o.bulk.Key(id))}
		if o, seen := oldest[g]; !seen || v.N < o.N {
			oldest[g] = v
		}
	}
	for g, v := range oldest {
		w.notes(o, o.bulk.Key(g.block), v, g.how, from)
	}
	return nil
}

// getTogether asks for keys of a block one by one, at the same time, so that their loads share calls of LoadMany.
func (w *worker) getTogether(ctx context.Context, o *opened) error {
	block := rand.N(blocks)
	var all errgroup.Group
	for range 6 {
		all.Go(func() error { // owner: the call; ends with its Get; joined below
			ctx, cancel := impatient(ctx)
			defer cancel()
			ctx, outcomes := withOutcomes(ctx)
			id := block*w.bulk/blocks + rand.N(w.bulk/blocks)
			from := now()
			v, err := o.bulk.Get(ctx, id)
			if err != nil {
				return w.failed(ctx, o, o.bulk.Key(id), from, err)
			}
			w.notes(o, o.bulk.Key(block), v, outcomes.of(o.bulk.Key(id)), from)
			return nil
		})
	}
	return all.Wait()
}

// getBirth asks for one of the things that were born last, or will be next.
func (w *worker) getBirth(ctx context.Context, o *opened) error {
	born, err := w.truth.born(ctx)
	if err != nil {
		return err
	}
	ctx, all := withOutcomes(ctx)
	id := max(0, born-3+rand.Int64N(6))
	from, key := now(), o.births.Key(id)
	switch _, err = o.births.Get(ctx, id); {
	case errors.Is(err, cacheguard.ErrNotFound):
		w.note(event{Kind: absent, Guard: o.name, Key: key, How: all.of(key), From: from})
	case err != nil:
		return w.failed(ctx, o, key, from, err)
	}
	return nil
}

var errFaulty = errors.New("the source has failed")

// getFaulty has a loader that fails and panics. Its callers get that, and nothing else.
func (w *worker) getFaulty(ctx context.Context, o *opened) error {
	from := now()
	_, err := cacheguard.Get(ctx, o.guard, "faulty", func(ctx context.Context) (value, error) {
		switch rand.N(4) {
		case 0:
			return value{}, errFaulty
		case 1:
			panic(errFaulty)
		}
		cacheguard.SetTTL(ctx, 10*time.Millisecond)
		return w.load(ctx)
	})
	var remote *cacheguard.LoadError
	if err == nil || errors.Is(err, errFaulty) || errors.As(err, &remote) && strings.Contains(remote.Message, errFaulty.Error()) {
		return nil
	}
	return w.failed(ctx, o, "faulty", from, err)
}

// pastKey is in the context of calls that go past the cache.
type pastKey struct{}

// gate says which calls may use the cache: of the keys that somebody has shut it for, none.
func (o *opened) gate(ctx context.Context, key string) error {
	if shut := o.shut.Load(); ctx.Value(pastKey{}) != nil || shut != nil && (*shut)(key) {
		return errors.New("the gate is shut")
	}
	return nil
}

// shutSome shuts the gate for a part of the keys, and later opens it again; not for the quiet ones, whose loads are counted.
func (w *worker) shutSome(_ context.Context, o *opened) error {
	if rand.N(2) == 0 {
		o.shut.Store(nil)
		if from := o.off.Swap(0); from > 0 {
			w.note(event{Kind: off, Guard: o.name, From: from})
		}
		return nil
	}
	o.off.CompareAndSwap(0, now())
	part, quietly := rand.N(4), strings.TrimSuffix(o.quiet.Key(0), "0")
	shut := func(key string) bool {
		return !strings.HasPrefix(key, quietly) && (len(key) == 0 || int(key[len(key)-1])%4 == part)
	}
	o.shut.Store(&shut)
	return nil
}

// getPast is getThing past the cache.
func (w *worker) getPast(ctx context.Context, o *opened) error {
	return w.getThing(context.WithValue(ctx, pastKey{}, true), o)
}

// warm loads things that callers may want.
func (*worker) warm(ctx context.Context, o *opened) error {
	ctx, cancel := impatient(ctx)
	defer cancel()
	_, _ = o.things.Warm(ctx, func(yield func(int) bool) { // what fails in an outage is nobody's error
		for range 20 {
			if !yield(rand.N(things)) {
				return
			}
		}
	}, cacheguard.WarmConfig{Batch: 5})
	return nil
}

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/cacheguard/go/cacheguard"
)

// transaction marks the context of one: what is loaded with it is for nobody else.
type transaction struct{}

// readWithin reads rows that are not named, in a transaction.
func (w *worker) readWithin(ctx context.Context, o *opened, in *cacheguard.Intent) {
	ctx = context.WithValue(in.Context(ctx), transaction{}, true)
	_, _ = cacheguard.Get(ctx, o.guard, someRow(), w.loadRow) // what it gets is its own business
	_, _ = cacheguard.GetMany(ctx, o.guard, []string{someRow(), someRow()}, func(ctx context.Context, keys []string) (map[string]value, error) {
		all := make(map[string]value)
		for _, key := range keys {
			v, err := w.loadRow(ctx)
			if err != nil {
				return nil, err
			}
			all[key] = v
		}
		return all, nil
	})
	_, _ = o.bulk.Get(ctx, rand.N(w.bulk)) // where callers outside share loads
	_, _ = o.bulk.GetMany(ctx, []int{rand.N(w.bulk), rand.N(w.bulk)})
}

// intend writes in a transaction that names its keys before, and a tag later.
func (w *worker) intend(ctx context.Context, o *opened) error {
	row, tag, from := someRow(), tagsOf(1 << rand.UintN(tags))[0], now()
	in, err := o.guard.Intend(ctx, cacheguard.Changes{Keys: []string{row}})
	if err != nil {
		return err // nothing was written
	}
	w.readWithin(ctx, o, in)
	n := int64(0)
	if err = in.Also(ctx, cacheguard.Changes{Tags: []string{tag}}); err == nil {
		n, err = w.commit(ctx, o, from, "key:"+row, "tag:"+tag)
	}
	if err == nil {
		w.mayDie()
		from := now()
		v, failed := cacheguard.Get(in.Context(ctx), o.guard, row, w.loadRow) // past the cache
		if failed == nil && v.N < n {
			w.note(event{Kind: behind, Guard: o.name, Key: row, N: v.N, From: from})
		}
	}
	done := in.Done(ctx)
	w.readWithin(ctx, o, in) // its context lives on
	if err != nil {
		return err
	}
	return w.ended(ctx, o, []string{"key:" + row, "tag:" + tag}, n, from, done)
}

// intendThing writes a thing. Where it must die, it does while that is committed and not invalidated, or after it.
func (w *worker) intendThing(ctx context.Context, o *opened) error {
	id, from := rand.N(things), now()
	in, err := o.guard.Intend(ctx, o.things.Changes(id))
	if err != nil {
		return err // nothing was written
	}
	n, err := w.commit(ctx, o, from, "key:"+o.things.Key(id))
	if rand.N(2) == 0 {
		w.mayDie()
	}
	done := in.Done(ctx)
	w.mayDie()
	if err != nil {
		return err
	}
	return w.ended(ctx, o, []string{"key:" + o.things.Key(id)}, n, from, done)
}

// commit writes what an intent that was asked for at from names. If that took so long that the intent may have expired, nothing is said.
func (w *worker) commit(ctx context.Context, o *opened, from int64, scopes ...string) (int64, error) {
	n, err := w.truth.write(ctx, "many", 0)
	if err != nil || now()-from > int64(lease/2) {
		return n, err
	}
	for _, scope := range scopes {
		w.note(event{Kind: written, Guard: o.name, Scope: scope, N: n, How: "intent", From: from, Version: o.version})
	}
	return n, nil
}

// updateAlso names another key within its write.
func (w *worker) updateAlso(ctx context.Context, o *opened) error {
	row, other, from, n := someRow(), someRow(), now(), int64(0)
	var called atomic.Bool
	err := o.guard.Update(ctx, row, func(ctx context.Context) (err error) {
		called.Store(true)
		if err = cacheguard.Also(ctx, cacheguard.Changes{Keys: []string{other}}); err == nil {
			n, err = w.truth.write(ctx, "many", 0)
		}
		return err
	})
	w.judges(o, called.Load(), err == nil || cacheguard.Written(err))
	if n == 0 || !cacheguard.Written(err) && err != nil {
		return err
	}
	return w.ended(ctx, o, []string{"key:" + row, "key:" + other}, n, from, err)
}

// judges notes when an error was wrong about whether write was called.
func (w *worker) judges(o *opened, called, says bool) {
	if called != says {
		w.note(event{Kind: misjudged, Guard: o.name, How: fmt.Sprintf("called: %t, it says: %t", called, says), From: now()})
	}
}

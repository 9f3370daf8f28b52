package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/rwlock"
)

// change writes, and invalidates what that concerns. If that fails, it is pending.
func (w *worker) change(ctx context.Context, o *opened, scopes []string, invalidate func() error) error {
	from := now()
	n, err := w.truth.write(ctx, "many", 0)
	if err != nil {
		return err
	}
	return w.ended(ctx, o, scopes, n, from, invalidate())
}

// ended notes how what changed n was invalidated.
func (w *worker) ended(ctx context.Context, o *opened, scopes []string, n, from int64, err error) error {
	kind := invalidated
	if err != nil {
		kind = pending
		var redis *cacheguard.RedisError
		if ctx.Err() != nil || n == 0 || !errors.As(err, &redis) || redis.Op != "invalidate" {
			return err
		}
	}
	for _, scope := range scopes {
		w.note(event{Kind: kind, Guard: o.name, Scope: scope, N: n, From: from, Version: o.version})
	}
	return err
}

func (w *worker) invalidate(ctx context.Context, o *opened) error {
	one, other := someRow(), someRow()
	return w.change(ctx, o, []string{"key:" + one, "key:" + other}, func() error { return o.guard.Invalidate(ctx, one, other) })
}

func (w *worker) invalidateTags(ctx context.Context, o *opened) error {
	one, other := rand.UintN(tags), rand.UintN(tags)
	bits := 1<<one | 1<<other
	var scopes []string
	for _, tag := range tagsOf(uint(bits)) {
		scopes = append(scopes, "tag:"+tag)
	}
	return w.change(ctx, o, scopes, func() error { return o.guard.InvalidateTags(ctx, tagsOf(uint(bits))...) })
}

// invalidateAll does so twice: on a cluster, a view may have been made of a thing on a node that was told after the view's.
func (w *worker) invalidateAll(ctx context.Context, o *opened) error {
	return w.change(ctx, o, []string{"all"}, func() error {
		return errors.Join(o.guard.InvalidateAll(ctx), o.guard.InvalidateAll(ctx))
	})
}

func (w *worker) invalidateKind(ctx context.Context, o *opened) error {
	switch rand.N(5) {
	case 0:
		return w.change(ctx, o, []string{"kind:quiet"}, func() error { return o.quiet.InvalidateAll(ctx) })
	case 1, 2:
		return w.change(ctx, o, []string{"kind:bulk"}, func() error { return o.bulk.InvalidateAll(ctx) })
	}
	return w.change(ctx, o, []string{"kind:thing"}, func() error { return o.things.InvalidateAll(ctx) })
}

func (w *worker) invalidateThing(ctx context.Context, o *opened) error {
	id := rand.N(things)
	return w.change(ctx, o, []string{"key:" + o.things.Key(id)}, func() error {
		if rand.N(2) == 0 {
			return o.guard.Invalidate(ctx, o.things.Changes(id).Keys...)
		}
		return o.things.Invalidate(ctx, id)
	})
}

// invalidateViewed writes a thing, and ends it and then the view that is made of it: by two calls or at the end of an intent.
func (w *worker) invalidateViewed(ctx context.Context, o *opened) error {
	id := rand.N(things)
	view, thing := o.views.Key(id), o.things.Key(id)
	end := func(ctx context.Context) error {
		err := o.guard.Invalidate(ctx, thing)
		return errors.Join(err, o.guard.Invalidate(ctx, view))
	}
	if rand.N(2) == 0 {
		in, err := o.guard.Intend(ctx, o.things.Changes(id), o.views.Changes(id))
		if err != nil {
			return err // nothing was written
		}
		defer func() { _ = in.Done(ctx) }() // returns what the first did
		end = in.Done
	}
	return w.change(ctx, o, []string{"key:" + thing, "key:" + view}, func() error { return end(ctx) })
}

func (w *worker) invalidateBlock(ctx context.Context, o *opened) error {
	b := rand.N(blocks)
	ids := make([]int, w.bulk/blocks)
	for i := range ids {
		ids[i] = b*len(ids) + i
	}
	return w.change(ctx, o, []string{"key:" + o.bulk.Key(b)}, func() error { return o.bulk.Invalidate(ctx, ids...) })
}

// writeOf is the write of an update. It dies when the parent has said so.
func (w *worker) writeOf(o *opened, key string, n *int64) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		fence, _ := rwlock.FenceFrom(ctx)
		from := now()
		if *n, err = w.truth.write(ctx, key, fence); err != nil {
			return err
		}
		w.note(event{Kind: written, Guard: o.name, Scope: "key:" + key, N: *n, From: from, Version: o.version})
		w.mayDie()
		<-time.After(rand.N(5 * time.Millisecond))
		return nil
	}
}

// mayDie dies when the parent has said so.
func (w *worker) mayDie() {
	if w.dies.Load() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

func (w *worker) update(ctx context.Context, o *opened) error {
	row, from, n := someRow(), now(), int64(0)
	err := o.guard.Update(ctx, row, w.writeOf(o, row, &n))
	return w.ended(ctx, o, []string{"key:" + row}, n, from, err)
}

func (w *worker) updateThing(ctx context.Context, o *opened) error {
	id, from, n := rand.N(things), now(), int64(0)
	key := o.things.Key(id)
	err := o.things.Update(ctx, id, w.writeOf(o, key, &n))
	return w.ended(ctx, o, []string{"key:" + key}, n, from, err)
}

func (w *worker) updateMany(ctx context.Context, o *opened) error {
	keys, from, n := []string{someRow(), someRow(), someRow()}, now(), int64(0)
	var scopes []string
	for _, key := range keys {
		scopes = append(scopes, "key:"+key)
	}
	var called atomic.Bool
	err := o.guard.UpdateMany(ctx, keys, func(ctx context.Context) (err error) {
		called.Store(true)
		if rand.N(10) == 0 {
			return fmt.Errorf("%w: nothing was written", errFaulty)
		}
		n, err = w.truth.write(ctx, "many", 0)
		return err
	})
	w.judges(o, called.Load(), err == nil || cacheguard.Written(err))
	if errors.Is(err, errFaulty) {
		return nil
	}
	return w.ended(ctx, o, scopes, n, from, err)
}

// put stores what it wrote.
func (w *worker) put(ctx context.Context, o *opened) error {
	id, from, n := rand.N(things), now(), int64(0)
	key := o.things.Key(id)
	var called atomic.Bool
	err := o.things.Put(ctx, id, func(ctx context.Context) (value, error) {
		called.Store(true)
		err := w.writeOf(o, key, &n)(ctx)
		return value{N: n, ID: id, Tags: rand.UintN(1 << tags), By: "put", Version: o.version}, err
	})
	w.judges(o, called.Load(), err == nil || cacheguard.Written(err))
	return w.ended(ctx, o, []string{"key:" + key}, n, from, err)
}

// bear makes a thing, and says so to all that depends on what there is not.
func (w *worker) bear(ctx context.Context, o *opened) error {
	from := now()
	id, err := w.truth.bear(ctx)
	if err != nil {
		return err
	}
	return w.ended(ctx, o, []string{"birth:" + o.births.Key(id)}, 1, from, o.guard.InvalidateTags(ctx, "births"))
}

package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/mutex"
)

// reopen closes the Guard while others use it, and opens another.
func (w *worker) reopen(ctx context.Context, o *opened) error {
	another := w.open()
	if !w.opened.CompareAndSwap(o, another) {
		_ = another.close() // somebody else was faster
	}
	from := now()
	_ = o.close() // always nil
	if deadline := from + int64(20*time.Second); now() > deadline {
		w.note(event{Kind: late, Guard: o.name, How: "Close", From: from, Deadline: deadline})
	}
	return nil
}

func (w *worker) bypass(_ context.Context, o *opened) error {
	o.guard.Bypass(true)
	<-time.After(rand.N(50 * time.Millisecond))
	o.guard.Bypass(false)
	return nil
}

func (w *worker) bypassFleet(ctx context.Context, o *opened) error {
	return o.guard.BypassFleet(ctx, rand.N(50*time.Millisecond))
}

func (w *worker) inspect(ctx context.Context, o *opened) error {
	i, err := o.guard.Inspect(ctx, someRow())
	_ = i.String()
	if err == nil {
		_, err = o.guard.HasTag(ctx, tagOf(rand.N(tags)))
	}
	return err
}

func (w *worker) selfCheck(ctx context.Context, o *opened) error { return o.guard.SelfCheck(ctx) }

func (w *worker) stats(_ context.Context, o *opened) error {
	_, _ = o.guard.Stats(), o.things.Stats()
	return nil
}

// lock counts, under a lock. The usual mistake is to work on after the lease, and not to show the fence.
func (w *worker) lock(ctx context.Context, _ *opened) error {
	const row = "counted under a lock"
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // callers have more to do than to wait
	defer cancel()
	return w.locks.Do(ctx, "count", func(_ context.Context, l *mutex.Lease) error { // what counts is what was written
		fence := l.Fence()
		if w.wrong {
			fence = 0
		}
		count, err := w.truth.look(ctx, row, fence)
		if err != nil {
			return err
		}
		<-time.After(rand.N(20 * time.Millisecond))
		if w.wrong && rand.N(10) == 0 {
			<-time.After(lease + lease/2)
		}
		called := now()
		w.note(event{Kind: tries, Key: "lock", From: called})
		if err = w.truth.set(ctx, row, fence, count+1); err == nil {
			w.note(event{Kind: adds, Key: "lock", From: called})
		}
		return err
	})
}

// swap counts in the Redis that is disturbed.
func (w *worker) swap(ctx context.Context, _ *opened) error {
	called := now()
	w.note(event{Kind: tries, Key: "swap", From: called})
	_, err := cas.Update(ctx, w.cas, "count", func(old int64, _ bool) (int64, error) { return old + 1, nil })
	if err == nil {
		w.note(event{Kind: adds, Key: "swap", From: called})
	}
	return err
}

package write

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
)

// ErrNotAnnounced is why a key is not replaced.
var ErrNotAnnounced = errors.New("its change could not be announced")

// Replacement is what is put in the place of what Redis has for a key, by the end of a change that stands on it.
type Replacement interface {
	Key() string // of the value in Redis
	// Load loads it, under a lease that it gets while the change stands. Shared: it is in place, as somebody else has loaded it since then. Before it
	// waits for that, it calls withdraw: what that one stores must not end with the change. Without a TTL, nothing is to be stored, and the generation, if there is one, was found meanwhile.
	Load(ctx context.Context, withdraw func()) (f protocol.Filling, shared bool)
	Report(ctx context.Context, status string, err error) // hears what came of it
}

// Invalidate removes keys, and ends the epochs of names. Keys that can be replaced are.
func (w *Writes) Invalidate(ctx context.Context, named, names []string) error {
	by := w.Owner.Replacing(ctx, named)
	defer w.Owner.Ended(names)
	if len(by) == 0 {
		return w.tell(ctx, requests(w.targets(named, names), ""), sort.invalidate)
	}
	rest, hot := w.targets(named, names), []target(nil)
	rest = slices.DeleteFunc(rest, func(t target) bool {
		is := !t.isEpoch() && by[t.name] != nil
		if is {
			hot = append(hot, t)
		}
		return is
	})
	c := w.change(true)
	defer c.Stop()
	var telling sync.WaitGroup
	var failed error
	telling.Go(func() { failed = w.tell(ctx, requests(rest, ""), sort.invalidate, hot...) }) // joined below
	_ = c.place(ctx, hot, false)                                                             // what it stands on is replaced, the rest removed
	c.mu.Lock()
	c.called = true // if it is lost, it does not stand again
	c.mu.Unlock()
	telling.Wait()
	return errs.Join(failed, c.finish(ctx, hot, by, rest))
}

// finish ends the change on the targets: where there is a replacement, when that has been loaded, and elsewhere at once; before, as a replacement is
// loaded under the next epochs of what is ended, and may be made of it. Until all is replaced, others may be made of what is still served: so they end
// once more after that, with those that have ended before.
func (c *Change) finish(ctx context.Context, on []target, by map[string]Replacement, before []target) error {
	var placed, rest []target
	var lone []Replacement
	for _, t := range on {
		switch r := by[t.name]; {
		case t.isEpoch() || r == nil:
			rest = append(rest, t)
		case c.isPlaced(t):
			placed = append(placed, t)
		default:
			rest = append(rest, t)
			lone = append(lone, r)
		}
	}
	again := append(before, rest...)
	failed := make([]error, len(placed), len(placed)+1)
	failed = append(failed, c.of.tell(ctx, requests(rest, c.text), sort.end, placed...))
	for _, r := range lone { // now that it is removed, or pending
		r.Report(ctx, protocol.Refused, ErrNotAnnounced)
	}
	defer c.of.Owner.Ended(namesOf(rest))
	var replacing sync.WaitGroup
	for i, t := range placed {
		replacing.Go(func() { failed[i] = c.replace(ctx, t, by[t.name], again) }) // stop: its context, or LoadTimeout; joined below
	}
	replacing.Wait()
	if len(placed) > 0 && len(again) > 0 || len(before) > 0 {
		failed = append(failed, c.of.tell(ctx, requests(again, ""), sort.invalidate))
	}
	return errs.Join(failed...)
}

func (c *Change) isPlaced(t target) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standLocked(t).placed
}

// replace ends the change on a key with what is loaded.
func (c *Change) replace(ctx context.Context, t target, by Replacement, after []target) error {
	f, shared := by.Load(ctx, func() { c.withdraw(ctx, t) })
	if shared {
		t.forget(t)
		by.Report(ctx, protocol.Stored, nil)
		return nil
	}
	all := requests([]target{t}, c.text)
	all[0].filling, all[0].valueKey = f, by.Key()
	err, status := c.of.tell(ctx, all, sort.end, after...), ""
	if f.TTL > 0 && err == nil {
		status, _ = all[0].reply.Text()
	}
	by.Report(ctx, cmp.Or(status, protocol.Refused), err)
	return err
}

// withdraw ends the change on a key, and removes nothing. If that fails, what is stored ends when the change would.
func (c *Change) withdraw(ctx context.Context, t target) {
	c.mu.Lock()
	if s := c.standLocked(t); s.renewal != nil {
		c.of.Keeper.Drop(s.renewal)
	}
	c.mu.Unlock()
	_, _ = c.of.write(ctx, t.part, []*script.Call{protocol.Withdraw(c.of.Keys.ValueKey(t.name), c.text)})
}

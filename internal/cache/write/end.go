package write

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/run/errs"
)

// Done invalidates what a shared change has named, and ends it, even if ctx has ended. A second one returns what the
// first did.
func (c *Change) Done(ctx context.Context) error {
	c.done.Do(func() { // RedisTimeout bounds it
		c.mu.Lock()
		late := c.over
		c.called = true
		c.mu.Unlock()
		defer c.Stop()
		if !c.of.Life.Begin() {
			c.err = c.of.Closed
			return
		}
		defer c.of.Life.Done()
		if c.err = c.end(ctx); late {
			c.err = errs.Join(c.err, c.overdue())
		}
	})
	return c.err
}

// end ends the change on what it has named.
func (c *Change) end(ctx context.Context) error {
	return c.of.tell(ctx, c, sort.end, c.steps()...)
}

// expire ends a shared change that nobody has ended in time.
func (c *Change) expire() {
	if !c.stop(true) {
		return
	}
	c.of.Life.Try(func() { // stop: RedisTimeout for each batch
		c.warn("intent stood for longer than UpdateTimeout, its changes are invalidated now")
		_ = c.end(context.Background()) // what fails is pending, and Done invalidates once more
	})
}

// warn counts and logs that the change stood for too long.
func (c *Change) warn(message string) {
	c.of.Overdue.Add(1)
	c.of.Logger.LogAttrs(context.Background(), slog.LevelWarn, "cacheguard: "+message,
		slog.String("for", time.Since(c.since).Round(time.Millisecond).String()), slog.String("names", errs.Names(shown(c.named())).String()))
}

// shown are the names of targets, as people know them.
func shown(on []target) (names []string) {
	for _, t := range on {
		names = append(names, cmp.Or(t.shown(t), "everything"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// named are the targets that the change has named.
func (c *Change) named() []target { return slices.Concat(c.steps()...) }

// Stop ends the renewals.
func (c *Change) Stop() { c.stop(false) }

// stop reports whether it was the first to end them, and whether Done was not called before, if it is late.
func (c *Change) stop(late bool) (first bool) {
	c.mu.Lock()
	first = !c.over && !(late && c.called)
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
	for _, stands := range c.places {
		for _, s := range stands {
			if s.renewal != nil {
				c.of.Keeper.Drop(s.renewal)
			}
		}
	}
	c.mu.Unlock()
	w := c.of
	w.mu.Lock()
	defer w.mu.Unlock()
	if !late { // else an update's write still runs
		delete(w.updates, c)
	}
	if c.shared {
		w.late = w.late || late && first
		delete(w.stand, c)
		w.Owner.AreIntended(w.late || len(w.stand) > 0)
	}
	return first
}

// inTime ends the timer, and reports whether Timeout was not over before.
func (c *Change) inTime() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timer == nil || c.timer.Stop()
}

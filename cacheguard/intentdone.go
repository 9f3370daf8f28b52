package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Done invalidates what was named, and ends the intent. It is called after the commit, or the rollback, and may be called again: then it
// does nothing, and returns what the first call did. As with Invalidate, the requests are sent even if ctx has ended, and the error joins a
// *RedisError, whose Op is invalidate, for each key and tag that is pending; the intent then expires as if the process had died. After
// Close, it returns ErrClosed, and the intent expires. It takes one round trip.
func (in *Intent) Done(ctx context.Context) error {
	if in == nil {
		return errNilIntent
	}
	in.mu.Lock()
	first, overdue := !in.called, in.over
	in.called = true
	in.mu.Unlock()
	if first {
		in.finish(ctx, overdue)
	}
	select {
	case <-in.done:
		return in.err
	default:
	}
	select {
	case <-in.done:
		return in.err
	case <-ctx.Done():
		return fmt.Errorf("cacheguard: intent: its end is still under way: %w", context.Cause(ctx))
	}
}

// finish ends the intent in the background.
func (in *Intent) finish(ctx context.Context, overdue bool) {
	g := in.guard
	in.stop()
	ok := g.life.Try(func() { // stop: RedisTimeout for each batch
		in.err = in.invalidate(ctx)
		if overdue {
			in.err = errors.Join(in.err, in.overdue())
		}
		close(in.done)
	})
	if !ok {
		in.err = wasCalled(ErrClosed)
		close(in.done)
	}
}

// expire ends an intent that nobody has ended in time.
func (in *Intent) expire() {
	in.mu.Lock()
	called := in.called
	in.mu.Unlock()
	if called || !in.stop() {
		return
	}
	g := in.guard
	g.life.Try(func() { // stop: RedisTimeout for each batch
		g.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "cacheguard: intent stood for longer than UpdateTimeout, its changes are invalidated now",
			slog.Duration("for", time.Since(in.since)))
		_ = in.invalidate(context.Background()) // what fails is pending, and Done invalidates once more
	})
}

// stop ends the renewals, and reports whether it was the first to do so.
func (in *Intent) stop() bool {
	in.guard.intents.remove(in)
	in.mu.Lock()
	defer in.mu.Unlock()
	first := !in.over
	in.over = true
	if in.timer != nil {
		in.timer.Stop()
	}
	for _, some := range in.stands {
		for _, s := range some {
			if s.renewal != nil {
				in.guard.keeper.Drop(s.renewal)
			}
		}
	}
	return first
}

package cacheguard

import (
	"context"
	"fmt"
	"time"

	whyoff "github.com/cacheguard/go/internal/cache/off"
	"github.com/cacheguard/go/internal/cache/write"
)

const longestBypass = 24 * time.Hour

// errBypassed is why nothing is read.
var errBypassed = whyoff.ErrBypassed

// Bypass turns the cache off for this Guard, or on again. Calls that begin while it is off load without it, also with
// FailClosed; their loads are shared and bounded as usual, and store nothing. Invalidations and writes work as usual,
// so the cache stays right.
func (g *Guard) Bypass(on bool) {
	if g != nil {
		g.off.Here(on)
	}
}

// BypassFleet is Bypass(true) for all Guards with this Prefix, for d, at most 24 hours; 0 ends it. A later call
// replaces an earlier one. This Guard bypasses at once, others within 2 seconds and a round trip. The error is a
// *RedisError if Redis may not have learned of it.
func (g *Guard) BypassFleet(ctx context.Context, d time.Duration) error {
	switch {
	case g == nil:
		return errNilGuard
	case d < 0 || d > longestBypass || d > 0 && d < time.Millisecond:
		return fmt.Errorf("cacheguard: bypass: %v is neither 0 nor between a millisecond and %v", d, longestBypass)
	case ctx.Err() != nil:
		return fmt.Errorf("cacheguard: bypass: %w", context.Cause(ctx))
	case !g.life.Begin():
		return ErrClosed
	}
	defer g.life.Done()
	if err := g.off.Fleet(ctx, d); err != nil {
		return &RedisError{Op: "bypass", Key: g.off.FleetKey(), Err: err}
	}
	return nil
}

// openOff makes what says that the cache is off.
func (g *Guard) openOff() {
	gate := g.cfg.Gate
	if ask := gate; ask != nil {
		gate = func(ctx context.Context, key string) error {
			err := ask(ctx, key)
			if err != nil {
				g.tell(ctx, EventGated, key, err)
			}
			return err
		}
	}
	g.off.Open(whyoff.Config{
		Redis: g.rdb, Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, Timeout: g.cfg.RedisTimeout, Life: g.life,
		Pending: &g.writes, Gate: gate, Changed: g.journal.Bypass,
	})
}

// mustBypass returns why the key must not be read; nil if it may be.
func (g *Guard) mustBypass(ctx context.Context, key string) *RedisError {
	if g.off.None() {
		return nil
	}
	if err := g.off.Why(ctx, key); err != nil {
		return &RedisError{Op: "get", Key: key, Err: err}
	}
	return nil
}

// way says whether a call may use the cache for a key. It is asked before anything is read: a value that was read while
// an invalidation was pending is old, even if that has been sent by the time of the reply.
type way struct {
	reason *RedisError // why it must not; nil: it may
	past   write.Past  // what it must read past the cache for
}

// look finds out, where there is a reason to ask.
func (w *way) look(ctx context.Context, g *Guard, key string) {
	if w.reason = g.mustBypass(ctx, key); w.reason == nil {
		w.past = pastOf(ctx, g, key)
	}
}

// isPast reports whether the call must load whatever the cache has.
func (w *way) isPast() bool { return w.reason != nil || w.past.Named != nil }

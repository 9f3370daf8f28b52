package cacheguard

import (
	"context"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/cache/inprocess"
	whyoff "github.com/cacheguard/go/internal/cache/off"
)

const longestBypass = 24 * time.Hour

// errBypassed is why nothing is read.
var errBypassed = whyoff.ErrBypassed

// Bypass turns the cache off for this Guard, or on again. It is for when you doubt that the cached values are right. Calls that
// begin while the cache is off load without it, with the outcome bypassed, also with FailClosed. Their loads are shared and
// bounded as usual, and store nothing. Invalidate and Update work as usual, so the cache stays right for other instances, and
// for this one when it is on again. Loads that are under way end normally.
//
// Bypass(false) does not end a BypassFleet.
func (g *Guard) Bypass(on bool) {
	if g != nil {
		g.off.Here(on)
	}
}

// BypassFleet is Bypass(true) for all Guards with this Prefix, for d, at most 24 hours. It ends by itself, so that nobody can
// forget it; 0 ends it now. A later call replaces an earlier one.
//
// This Guard bypasses at once. Others check every 2 seconds while they are in use, without delaying a call, so they follow within 2
// seconds and a round trip. A Guard that was not in use follows a round trip after its first call. One that cannot reach Redis does
// not change, but a bypass that it knows of still ends in time.
//
// The error is a *RedisError if Redis may not have learned of it. A disabled Guard, which cannot reach others, always
// returns an error.
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
	if g.cfg.Disabled {
		return fmt.Errorf("cacheguard: bypass: %w", inprocess.ErrDisabled)
	}
	if err := g.off.Fleet(ctx, d); err != nil {
		return &RedisError{Op: "bypass", Key: g.off.FleetKey(), Err: err}
	}
	return nil
}

// SetServe replaces Config.Serve, for a rollout in steps, and as a switch to turn everything off. Calls that have begun
// go on. It holds for this Guard: the other instances have theirs. Nil: the default.
func (g *Guard) SetServe(serve func(key string) bool) {
	if g == nil || g.cfg.Disabled {
		return
	}
	if serve == nil && g.cfg.Shadow > 0 {
		serve = func(string) bool { return false }
	}
	g.off.Serve(serve)
}

// WithoutCache returns a context for calls that want what the source has: a Get of this Guard with the context, and
// Gets of its loader, load without the cache, as after Bypass. It ends with ctx.
func (g *Guard) WithoutCache(ctx context.Context) context.Context {
	if g == nil {
		return ctx
	}
	return g.off.Excuse(ctx)
}

// openOff makes what says that the cache is off.
func (g *Guard) openOff() {
	g.off.Open(whyoff.Config{
		Redis: g.rdb, Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, Timeout: g.cfg.RedisTimeout, Life: g.life,
		Pending: &g.writes, Changed: g.journal.Bypass,
	}, g.cfg.Disabled)
	g.SetServe(g.cfg.Serve)
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

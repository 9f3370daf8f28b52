package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/cache/bypass"
	"github.com/cacheguard/go/internal/cache/inprocess"
	"github.com/cacheguard/go/internal/cache/write"
)

const longestBypass = 24 * time.Hour

// errBypassed is why nothing is read.
var errBypassed = errors.New("the cache is bypassed")

// Bypass turns the cache off for this Guard, or on again. It is for when you doubt that the cached values are right. Calls that
// begin while the cache is off load without it, with the outcome bypassed, also with FailClosed. Their loads are shared and
// bounded as usual, and store nothing. Invalidate and Update work as usual, so the cache stays right for other instances, and
// for this one when it is on again. Loads that are under way end normally.
//
// Bypass(false) does not end a BypassFleet.
func (g *Guard) Bypass(on bool) {
	if g != nil {
		g.bypass.Here(on)
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
	if err := g.bypass.Fleet(ctx, d); err != nil {
		return &RedisError{Op: "bypass", Key: g.bypass.Key(), Err: err}
	}
	return nil
}

// newBypass makes the switch of the Guard.
func (g *Guard) newBypass() *bypass.Switch {
	return bypass.New(bypass.Config{
		Redis: g.rdb, Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, Timeout: g.cfg.RedisTimeout, Life: g.life,
		Changed: func(on bool, until time.Time) {
			g.detours.put(bypassing, on)
			g.journal.Bypass(on, until)
		},
		LookDue: func(due bool) (was bool) {
			was = g.detours.has(lookDue)
			g.detours.put(lookDue, due)
			return was
		},
	})
}

// mustBypass returns why the key must not be read; nil if it may be.
func (g *Guard) mustBypass(ctx context.Context, key string) *RedisError {
	if g.detours.none() {
		return nil
	}
	return g.detour(ctx, key)
}

func (g *Guard) detour(ctx context.Context, key string) *RedisError {
	if g.detours.has(withoutRedis) {
		return &RedisError{Op: "get", Key: key, Err: inprocess.ErrDisabled}
	}
	if g.detours.has(lookDue) {
		g.bypass.LookLater()
	}
	if g.detours.has(bypassing) {
		return &RedisError{Op: "get", Key: key, Err: errBypassed}
	}
	if g.detours.has(choosing) && !g.serves(key) {
		return &RedisError{Op: "get", Key: key, Err: errUnserved}
	}
	if g.detours.has(excusing) && ctx.Value(withoutCacheKey{g}) != nil {
		return &RedisError{Op: "get", Key: key, Err: errExcused}
	}
	if g.writes.IsPending(key) {
		return &RedisError{Op: "get", Key: key, Err: write.ErrPending}
	}
	return nil
}

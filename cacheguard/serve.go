package cacheguard

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/verify"
)

var (
	errUnserved = fmt.Errorf("%w for this key (Config.Serve)", errBypassed)
	errExcused  = fmt.Errorf("%w for this call (WithoutCache)", errBypassed)
)

// serving says which keys the cache may serve, and counts what it would have served of the others.
type serving struct {
	serve atomic.Pointer[func(key string) bool] // nil: the default

	running                    atomic.Int64 // shadows
	hits, missed, failed, took atomic.Uint64
	differed                   atomic.Uint64
	verifier                   verify.Verifier
}

// mostShadows is how many shadows there are at once. Others are left out.
const mostShadows = 1024

// Shadowed counts Gets that also asked the cache; see Config.Shadow.
type Shadowed struct {
	Hits     uint64        // that the cache would have answered. Gets beyond 1,024 at a time do not ask
	Missed   uint64        // that it would not
	Failed   uint64        // that Redis or the second load did not answer, or whose value cannot be cached
	Differed uint64        // hits that were not what the source had: perhaps it was being written
	Old      uint64        // how many of these were old and stayed so: the Logger has the key. It is found out as for Verified.Stale, for 4 at a time
	Took     time.Duration // how long the hits took, together
}

// SetServe replaces Config.Serve, for a rollout in steps, and as a switch to turn everything off. Calls that have begun
// go on. It holds for this Guard: the other instances have theirs. Nil: the default.
func (g *Guard) SetServe(serve func(key string) bool) {
	if g == nil || g.cfg.Disabled {
		return
	}
	if serve == nil {
		g.serving.serve.Store(nil)
	} else {
		g.serving.serve.Store(&serve)
	}
	g.detours.put(choosing, serve != nil || g.cfg.Shadow > 0)
}

// WithoutCache returns a context for calls that want what the source has: a Get of this Guard with the context, and
// Gets of its loader, load without the cache, as after Bypass. It ends with ctx.
func (g *Guard) WithoutCache(ctx context.Context) context.Context {
	if g == nil {
		return ctx
	}
	g.detours.put(excusing, true)
	return context.WithValue(ctx, withoutCacheKey{g}, true)
}

type withoutCacheKey struct{ guard *Guard }

func (g *Guard) openServing() {
	g.serving.verifier.Delay, g.serving.verifier.Clock, g.serving.verifier.Life = g.cfg.Verify.Delay, g.cfg.clock, g.life
	g.samples = g.cfg.Verify.OneIn != 0 || g.cfg.Shadow > 0
	g.SetServe(g.cfg.Serve)
}

// serves reports whether the cache may serve the key.
func (g *Guard) serves(key string) bool {
	if serve := g.serving.serve.Load(); serve != nil {
		return (*serve)(key)
	}
	return g.cfg.Shadow == 0
}

// isOff reports whether the cache is turned off for the key.
func (g *Guard) isOff(key string) bool {
	return g.detours.has(bypassing) || g.detours.has(choosing) && !g.serves(key)
}

func (s *serving) shadowed() Shadowed {
	return Shadowed{
		Hits: s.hits.Load(), Missed: s.missed.Load(), Failed: s.failed.Load(), Differed: s.differed.Load(), Old: s.verifier.Stale.Load(),
		Took: time.Duration(s.took.Load()),
	}
}

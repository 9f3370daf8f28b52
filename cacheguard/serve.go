package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/intent"
	"github.com/cacheguard/go/internal/verify"
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
	Old      uint64        // of these, those that were old and stayed so. It is found out as for Verified.Stale, for 4 at a time
	Took     time.Duration // how long the hits took, together
}

// SetServe replaces Config.Serve, for a rollout in steps, and as a switch to turn everything off. Calls that have begun go on. It holds
// for this Guard: the other instances have theirs. Nil: the default.
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

// WithoutCache returns a context for calls that want what the source has: a Get of this Guard with the context, and Gets of its loader, load
// without the cache, as after Bypass. It ends with ctx.
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

// shadow asks the cache, in the background, what it would have answered to a call that has loaded without it.
func shadow[V any](ctx context.Context, g *Guard, spec loadSpec[V], key string, loaded V, err error) {
	s := &g.serving
	absent := err != nil && absentAlone(err)
	within := pastOf(ctx, g, key)
	switch load := spec.loadOne(key); {
	case load == nil, err != nil && !absent, within.Any(), g.detours.has(bypassing), g.serves(key), rand.Float64() >= g.cfg.Shadow:
		return
	case spec.tagsEach != nil:
		each := spec.tagsEach
		spec.tags = func(v *V) []string { return each(key, v) }
		fallthrough
	default:
		spec.load, spec.loadMany, spec.loadEach, spec.gathering, spec.spare = load, nil, nil, nil, true
	}
	if s.running.Add(1) > mostShadows || !g.life.Try(func() { // stop: that of reads and of loads
		defer s.running.Add(-1)
		ask := asker[V]{lookup[V]{guard: g, key: key, spec: spec, asked: g.clock.Now()}, any(&loaded)}
		if absent {
			ask.loaded = absence{}
		}
		ask.run(outsideLoads(context.WithoutCancel(ctx)))
	}) {
		s.running.Add(-1)
	}
}

// asker asks for a shadow.
type asker[V any] struct {
	lookup[V]

	loaded any // *V, or absence
}

func (a *asker[V]) run(ctx context.Context) {
	g, s := a.guard, &a.guard.serving
	begun := time.Now()
	var v V
	var how Outcome
	var err error
	if kept, ok := a.spec.fromLocal(g, a.key); ok {
		v, how, err = kept.result()
	} else {
		v, how, err = a.read(ctx, intent.Past{})
	}
	served := any(&v)
	switch {
	case err != nil && !(absentAlone(err) && how != ""):
		if !errors.Is(err, ErrClosed) {
			s.failed.Add(1)
		}
		return
	case how != Hit && how != Local && how != Stale && how != Negative:
		s.missed.Add(1)
		return
	case how == Negative:
		served = absence{}
	}
	s.hits.Add(1)
	s.took.Add(uint64(time.Since(begun)))
	j := a.spec.job(g, a.key, scopeOf(ctx, g, a.key), nil)
	if c := (&comparison{guard: g, job: j, served: served}); !c.isServed(a.loaded) {
		s.differed.Add(1)
		s.verifier.Compare(ctx, c.closely())
	}
}

func (s *serving) shadowed() Shadowed {
	return Shadowed{
		Hits: s.hits.Load(), Missed: s.missed.Load(), Failed: s.failed.Load(), Differed: s.differed.Load(), Old: s.verifier.Stale.Load(),
		Took: time.Duration(s.took.Load()),
	}
}

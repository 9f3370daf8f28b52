package cacheguard

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/cache/intent"
)

// shadow asks the cache, in the background, what it would have answered to a call that has loaded without it.
func shadow[V any](ctx context.Context, g *Guard, spec loadSpec[V], key string, loaded V, err error) {
	s := &g.serving
	absent := err != nil && absentAlone(err)
	switch one := spec.loadOne(key); {
	case one == nil, err != nil && !absent, g.detours.has(bypassing), g.serves(key), rand.Float64() >= g.cfg.Shadow:
		return
	default:
		spec.loader, spec.loadMany, spec.loadEach, spec.gathering, spec.spare = one, nil, nil, nil, true
	}
	if s.running.Add(1) > mostShadows || !g.life.Try(func() { // stop: reads and loads have one
		defer s.running.Add(-1)
		spec.key, spec.valueKey = key, spec.valueKeyOf(g, key)
		ask := asker[V]{query[V]{guard: g, spec: spec, asked: g.clock.Now()}, any(&loaded)}
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
	query[V]

	loaded any // *V, or absence
}

func (a *asker[V]) run(ctx context.Context) {
	g, s := a.guard, &a.guard.serving
	begun := time.Now()
	var v V
	var how Outcome
	var err error
	if kept, ok := a.spec.fromLocal(g, a.spec.key); ok {
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
	j := a.spec.loadOf(g, a.spec.key, scopeOf(ctx, g), nil)
	if c := (&comparison{guard: g, job: j, served: served}); !c.isServed(a.loaded) {
		s.differed.Add(1)
		s.verifier.Compare(ctx, c.closely())
	}
}

// sample lets one in OneIn hits be compared, but none with what only a transaction sees.
func sample[V any](ctx context.Context, g *Guard, spec loadSpec[V], key string, served V, how Outcome, err error) {
	if scopeOf(ctx, g).isTransactions() {
		return
	}
	if how == Bypassed && g.cfg.Shadow > 0 {
		shadow(ctx, g, spec, key, served, err)
		return
	}
	if err != nil || how != Hit && how != Local || g.cfg.Verify.OneIn == 0 || rand.N(g.cfg.Verify.OneIn) != 0 {
		return
	}
	if spec.loader = spec.loadOne(key); spec.loader == nil {
		return
	}
	ctx = outsideLoads(context.WithoutCancel(ctx))
	j := spec.loadOf(g, key, scopeOf(ctx, g), nil)
	j.spare = true
	c := &comparison{guard: g, job: j, served: &served}
	g.verifier.Compare(ctx, c.closely())
}

package cacheguard

import (
	"context"
	"time"
)

// asking is a Get or a Fetch that is to be reported.
type asking struct {
	outer, inner context.Context //nolint:containedctx // the caller's, and its task's
	start        time.Time
	end          func(End) // nil: no hook wants to know
}

// watched reports whether there is more to be done with an answer than to count it.
func (g *Guard) watched() bool {
	return g.cfg.Hooks.OnGet != nil || g.cfg.Hooks.Begin != nil || g.samples
}

// asked begins to report a call.
func (g *Guard) asked(ctx context.Context, key string) asking {
	a := asking{outer: ctx, inner: ctx}
	if g.cfg.Hooks.OnGet != nil || g.cfg.Hooks.Begin != nil {
		a.start = time.Now()
		a.inner, a.end = g.cfg.Hooks.begin(ctx, TaskGet, key)
	}
	return a
}

// answered reports the answer: to package admin, to the end of the task, to OnGet, and to Verify.
func answered[V any](a *asking, g *Guard, key string, spec *loadSpec[V], v V, how Outcome, err error) {
	g.countAnswer(spec.policy, key, how, err)
	if g.samples {
		sample(a.inner, g, *spec, key, v, how, err)
	}
	if a.end == nil {
		return
	}
	a.end(End{Outcome: how, Err: err})
	if g.cfg.Hooks.OnGet != nil {
		g.cfg.Hooks.OnGet(a.outer, key, how, time.Since(a.start), err)
	}
}

// ask retrieves the value, and reports the answer.
func ask[V any](ctx context.Context, g *Guard, key string, spec *loadSpec[V]) (V, Outcome, error) {
	if !g.watched() {
		v, how, err := retrieve(ctx, g, key, spec)
		g.countAnswer(spec.policy, key, how, err)
		if g.rehearsal != nil {
			v = handOut(g, spec, key, v, err)
		}
		return v, how, err
	}
	a := g.asked(ctx, key)
	v, how, err := retrieve(a.inner, g, key, spec)
	answered(&a, g, key, spec, v, how, err)
	if g.rehearsal != nil {
		v = handOut(g, spec, key, v, err)
	}
	return v, how, err
}

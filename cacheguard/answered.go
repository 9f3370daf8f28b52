package cacheguard

import (
	"context"
	"time"
)

// ask retrieves the value of a Get or a Fetch, and reports the answer: to its task, package admin, OnGet and, at times, Verify.
//
// Complete adds to the spec what costs an allocation, and is needed only if the local tier has no answer; nil: nothing lacks.
func ask[V any](ctx context.Context, g *Guard, key string, spec *loadSpec[V], complete func()) (v V, how Outcome, err error) {
	var start time.Time
	if g.cfg.Hooks.OnGet != nil {
		start = time.Now()
	}
	within, end := g.cfg.Hooks.begin(ctx, TaskGet, key)
	v, how, err = retrieve(within, g, key, spec, complete)
	if g.samples {
		sample(within, g, *spec, key, v, how, err)
	}
	end(End{Outcome: how, Err: err})
	g.answered(ctx, spec.policy, key, how, start, err)
	if g.rehearsal != nil {
		v = handOut(g, spec, key, v, err)
	}
	return v, how, err
}

// answered counts an answer to a call that began at start, and tells OnGet.
func (g *Guard) answered(ctx context.Context, p *policy, key string, how Outcome, start time.Time, err error) {
	g.hottest.Note(key)
	if o := g.journal.Observer.Load(); o != nil {
		o.Answered(&p.kind.tally, key, wordOf(how, err))
	}
	if g.cfg.Hooks.OnGet != nil {
		g.cfg.Hooks.OnGet(ctx, key, how, time.Since(start), err)
	}
}

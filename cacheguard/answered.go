package cacheguard

import (
	"context"
	"time"
)

// ask retrieves the value of a Get or a Fetch, and reports the answer: to its task, and to Observers, for whom absence
// is ErrNotFound.
//
// Complete adds to the spec what costs an allocation, and is needed only if the local tier has no answer; nil: nothing
// lacks.
func ask[V any](ctx context.Context, g *Guard, key string, spec *loadSpec[V], complete func()) (v V, how Outcome, err error) {
	var start time.Time
	if g.observers.wantAnswers() && !spec.part {
		start = time.Now()
	}
	within, end := g.cfg.Hooks.begin(ctx, TaskGet, key)
	v, how, err = retrieve(within, g, key, spec, complete)
	end(End{Outcome: how, Err: err})
	g.answered(ctx, spec.policy, key, how, start, err)
	if g.rehearsal != nil {
		v = handOut(g, spec, key, v, err)
	}
	return v, how, spec.policy.absence(key, err)
}

// answered counts an answer, and reports it, to a call that began at start; zero: nobody is to know.
func (g *Guard) answered(ctx context.Context, p *policy, key string, how Outcome, start time.Time, err error) {
	if c := p.kind.counts; c != nil && how != "" {
		c.answered(how)
	}
	if !start.IsZero() {
		g.observers.tell(ctx, Event{What: EventGet, Key: key, Kind: p.kind.name, Outcome: how, Took: time.Since(start), Err: err})
	}
}

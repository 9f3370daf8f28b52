package cacheguard

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/cache/pages"
)

// ticket is a call's share in a flight.
type ticket = flight.Ticket[flightKey, answer]

// shareRebuild returns the value of a key that the read did not find, or found to be unfit.
func (g *Guard) shareRebuild(ctx context.Context, j *job, asked uint64, unfit []byte) (a answer, joined bool, err error) {
	t, err := g.enterRebuild(ctx, j, unfit)
	if err == nil {
		a, err = g.awaitTicket(ctx, t, j.key, asked)
	}
	return a, t.Joined, err
}

// enterRebuild is the first half of that.
func (g *Guard) enterRebuild(ctx context.Context, j *job, unfit []byte) (ticket, error) {
	m := filled
	if j.spare {
		m = lowly
	}
	return g.enter(ctx, j, m, func(ctx context.Context, publish func(answer)) answer {
		j.join(ctx)
		defer j.skip()
		r := g.newRebuild(j, unfit, publish)
		a := r.run(ctx)
		if j.free {
			r.report(ctx, a)
		}
		return a
	})
}

// share joins the key's flight, or starts one, and waits for its answer.
func (g *Guard) share(
	ctx context.Context, j *job, m mode, asked uint64, run flight.Run[answer],
) (a answer, joined bool, err error) {
	t, err := g.enter(ctx, j, m, run)
	if err == nil {
		a, err = g.awaitTicket(ctx, t, j.key, asked)
	}
	return a, t.Joined, err
}

// enter is the first half of that.
func (g *Guard) enter(ctx context.Context, j *job, m mode, run flight.Run[answer]) (t ticket, err error) {
	if t, err = g.flights.Enter(ctx, j.flight(m), run); err != nil {
		return t, err
	}
	if j.free || m == filled && pages.Finishes(ctx, j.key) {
		t.Keep()
	}
	if t.Joined && g.cfg.Hooks.OnJoin != nil {
		g.cfg.Hooks.OnJoin(j.key)
	}
	return t, nil
}

// waitFor waits for a flight's answer to a call that began at asked.
func waitFor(ctx context.Context, t ticket, asked uint64) (answer, error) {
	joined := t.Joined // which is all of it that the function keeps
	return t.Wait(ctx, func(early answer) bool { return early.answers(asked, joined) })
}

// awaitTicket waits for a flight's answer. For a call that joined the flight, the wait is a task.
func (g *Guard) awaitTicket(ctx context.Context, t ticket, key string, asked uint64) (answer, error) {
	ctx, end := g.beginJoined(ctx, t, key)
	a, err := waitFor(ctx, t, asked)
	return a, endJoined(end, a, err)
}

// beginJoined begins the task.
func (g *Guard) beginJoined(ctx context.Context, t ticket, key string) (within context.Context, end func(End)) {
	if !t.Joined || g.cfg.Hooks.Begin == nil {
		return ctx, nil
	}
	return g.cfg.Hooks.begin(ctx, TaskWait, key)
}

// endJoined ends it, and returns err.
func endJoined(end func(End), a answer, err error) error {
	if end == nil {
		return err
	}
	outcome := a.outcome
	if outcome == Loaded {
		outcome = Shared
	}
	end(End{Outcome: outcome, Origin: a.origin, Err: errors.Join(err, a.err)})
	return err
}

// unpack unpacks a flight's answer.
func unpack[V any](a answer, joined bool) (v V, how Outcome, err error) {
	how = a.outcome
	if joined && how == Loaded {
		how = Shared
	}
	if a.err != nil {
		return v, how, a.err
	}
	return *a.value.(*V), how, nil
}

// loadDirectly loads without asking Redis, and stores nothing.
func (g *Guard) loadDirectly(ctx context.Context, j *job, how Outcome) answer {
	s, err := g.loaders.takeSlot(ctx, j)
	if err != nil {
		return answer{err: err}
	}
	return g.loadIn(ctx, j, s, how)
}

// loadBypassed loads without Redis, because Redis does not answer. If Redis answers again by the time there is a slot, the
// flight asks it after all: otherwise every instance would make the loads that queued up in an outage, and none would store
// them.
func (g *Guard) loadBypassed(ctx context.Context, j *job, publish func(answer)) answer {
	if g.cfg.Disabled {
		return g.loadDirectly(ctx, j, Bypassed)
	}
	breaker := g.breakers.Of(j.valueKey)
	wasOpen := breaker.IsOpen()
	s, err := g.loaders.takeSlot(ctx, j)
	if err != nil {
		return answer{err: err}
	}
	if wasOpen && !breaker.IsOpen() && !g.off.Bypassed() && !g.off.Unserved(j.key) && !j.scope.isTransactions() {
		r := g.newRebuild(j, nil, publish)
		r.slot, r.afterBypass = s, true
		return r.run(ctx)
	}
	return g.loadIn(ctx, j, s, Bypassed)
}

// loadIn is loadDirectly in a slot, which it frees.
func (g *Guard) loadIn(ctx context.Context, j *job, s limit.Slot, how Outcome) answer {
	if g.cfg.Disabled {
		how = Bypassed
	}
	j.forgetOld()
	if how == Bypassed {
		g.journal.LoadsWithout()
	}
	began := g.clock.Tick()
	out := g.loaders.run(ctx, j, s)
	if out.err != nil && ctx.Err() != nil {
		return answer{err: closedOr(context.Cause(ctx))}
	}
	return answer{
		value: out.value, err: out.err, absent: out.absent, outcome: how, before: g.process.GoodBefore(began),
		cancelled: out.err != nil && errors.Is(out.err, context.Canceled), origin: g.cfg.Hooks.origin(ctx),
	}
}

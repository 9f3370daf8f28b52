package cacheguard

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/flight"
)

// shareRebuild returns the value of a key that the read did not find, or found to be unfit.
func (g *Guard) shareRebuild(ctx context.Context, j *job, asked uint64, unfit []byte) (a answer, joined bool, err error) {
	return g.share(ctx, j, filled, asked, func(ctx context.Context, publish func(answer)) answer {
		return g.newRebuild(j, unfit, publish).run(ctx)
	})
}

// share joins the key's flight, or starts one, and waits for its answer.
func (g *Guard) share(
	ctx context.Context, j *job, m mode, asked uint64, run flight.Run[answer],
) (a answer, joined bool, err error) {
	t, err := g.flights.Enter(ctx, j.flight(m), run)
	if err != nil {
		return a, false, err
	}
	if t.Joined && g.cfg.Hooks.OnJoin != nil {
		g.cfg.Hooks.OnJoin(j.key)
	}
	a, err = g.awaitTicket(ctx, t, j.key, func(early answer) bool { return early.answers(asked, t.Joined) })
	return a, t.Joined, err
}

// awaitTicket waits for a flight's answer. For a call that joined the flight, the wait is a task.
func (g *Guard) awaitTicket(
	ctx context.Context, t flight.Ticket[flightKey, answer], key string, acceptable func(answer) bool,
) (answer, error) {
	if !t.Joined || g.cfg.Hooks.Begin == nil {
		return t.Wait(ctx, acceptable)
	}
	ctx, end := g.cfg.Hooks.begin(ctx, TaskWait, key)
	a, err := t.Wait(ctx, acceptable)
	outcome := a.outcome
	if outcome == Loaded {
		outcome = Shared
	}
	end(End{Outcome: outcome, Origin: a.origin, Err: errors.Join(err, a.err)})
	return a, err
}

package cacheguard

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/run/yield"
)

// loadDirectly loads without asking Redis, and stores nothing.
func (g *Guard) loadDirectly(ctx context.Context, j *load, how Outcome) answer {
	s, err := g.loaders.takeSlot(ctx, j)
	if err != nil {
		return answer{err: err}
	}
	return g.loadIn(ctx, j, s, how)
}

// loadBypassed loads without Redis, because Redis does not answer. If Redis answers again by the time there is a slot,
// the flight asks it after all: otherwise every instance would make the loads that queued up in an outage, and none
// would store them.
func (g *Guard) loadBypassed(ctx context.Context, j *load, publish func(answer)) answer {
	breaker := g.breakers.Of(j.valueKey)
	wasOpen := breaker.IsOpen()
	s, err := g.loaders.takeSlot(ctx, j)
	if err != nil {
		return answer{err: err}
	}
	if wasOpen && !breaker.IsOpen() && !g.off.Bypassed() && !j.scope.isTransactions() {
		r := newRebuild(g, j, nil, publish)
		r.slot, r.afterBypass = s, true
		return r.run(ctx)
	}
	return g.loadIn(ctx, j, s, Bypassed)
}

// loadIn is loadDirectly in a slot, which it frees.
func (g *Guard) loadIn(ctx context.Context, j *load, s limit.Slot, how Outcome) answer {
	j.forgetOld()
	if how == Bypassed {
		g.journal.Without.Add(1)
	}
	began := g.clock.Tick()
	out := g.loaders.run(ctx, j, s)
	if out.err != nil && ctx.Err() != nil {
		return abandoned(ctx)
	}
	a := out.answer(how, began)
	a.unstored = ErrNotCached
	return a
}

// abandoned is the answer of a flight whose callers have all left, or whose Guard is closed.
func abandoned(ctx context.Context) answer { return answer{err: closedOr(context.Cause(ctx))} }

// answer is what was loaded, for the callers that began before the tick. What was only read is for nobody else: it may
// have been invalidated since.
func (l *loaded) answer(how Outcome, before uint64) answer {
	if l.again {
		before = 0
	}
	return answer{
		value: l.value, err: l.err, absent: l.absent, outcome: how, before: before, origin: l.origin, again: l.again,
		cancelled: l.err != nil && errors.Is(l.err, context.Canceled),
	}
}

// runHedge is the run of a flight beside Redis, as hedging begins it: it waits for a spare slot, and loads, unless
// another loader of the key runs. Then it stays until Redis has answered something, and as long again as makes a
// request late, as other answers are about to come: a Redis that stops for a while causes one load of a key, and no
// more. It need not where Redis is known to be slow.
func (g *Guard) runHedge(ctx context.Context, j *load, publish func(answer)) answer {
	part := g.breakers.Of(j.valueKey)
	s, err := g.loaders.takeSlot(ctx, j)
	if err != nil {
		return answer{err: err}
	}
	if !j.isInTime() || g.loaders.isLoading(j.policy.kind, j.key) {
		g.loaders.limits.Free(s)
		return answer{err: errNoHedge}
	}
	answered := part.Answered()
	flight.WaitersOf(ctx).Begin()
	g.journal.LoadsBeside()
	a := g.loadIn(ctx, j, s, Loaded)
	switch {
	case a.err != nil && !a.absent:
		if ctx.Err() == nil {
			j.policy.kind.cost.Failed(time.Now())
		}
	case !part.IsSlow():
		publish(a)
		select {
		case <-answered:
		case <-ctx.Done():
		}
		g.awaitOthers(ctx, part)
	}
	return a
}

// awaitOthers waits, once Redis has answered, for as long as makes a request late. Where the process is so busy that
// other answers may be there, and nobody has had time to look, that is a little longer.
func (g *Guard) awaitOthers(ctx context.Context, part *breaker.Breaker) {
	longest := g.cfg.RedisTimeout / 2
	for i, starved := 0, true; starved && i < yield.Reprieves && !part.IsSlow(); i++ { // if it is slow, that was no answer
		lifecycle.Sleep(ctx, min(g.lateAfter(part), longest))
		starved, longest = yield.Starved(), g.cfg.RedisTimeout/2/yield.Reprieves
	}
}

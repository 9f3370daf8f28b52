package cacheguard

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/cache/intent"
	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

var (
	errHedged = errors.New("a load beside redis was faster") // ends the wait of a call that it has answered
	errLate   = errors.New("redis takes longer than it ever does")
)

// lateAfter is how long Redis may keep a call waiting; 0: for ever.
func (g *Guard) lateAfter(b *breaker.Breaker) time.Duration {
	switch after := g.cfg.HedgeAfter; {
	case g.cfg.FailClosed, after == off && !g.cfg.follows:
		return 0
	case after == off:
		return b.Timeout(g.cfg.RedisTimeout)
	case after > 0:
		return after
	}
	// A load that takes long is begun late, so that a key's expiry costs one although all instances ask Redis at once.
	longest, cost := g.cfg.RedisTimeout/2, g.loaders.cost.Average()
	if cost == 0 {
		return longest
	}
	return min(max(b.LateAfter(g.cfg.RedisTimeout), cost), longest)
}

// mayGiveUp reports whether a call with the spec, which loads nothing beside Redis, may load instead of waiting for all of RedisTimeout.
func (s loadSpec[V]) mayGiveUp(ctx context.Context, g *Guard, key string) bool {
	return g.cfg.follows && !g.cfg.FailClosed && s.load != nil && !s.spare && (g.cfg.HedgeAfter == off || scopeOf(ctx, g).isTransactions()) &&
		s.isCheaper(g, key)
}

// isCheaper reports whether a load takes less time than a request for the key that is late, as far as is known.
func (s loadSpec[V]) isCheaper(g *Guard, key string) bool {
	return s.policyOf(g).cost.Worth(time.Now(), g.breakerOf(key).Expected(g.cfg.RedisTimeout))
}

// isSlow reports whether calls for the key may load first.
func (g *Guard) isSlow(key string) bool {
	return g.slowParts.Load() > 0 && g.breakerOf(key).IsSlow()
}

// mayHedge reports whether calls with the spec may load beside Redis.
func (s loadSpec[V]) mayHedge(ctx context.Context, g *Guard, key string) bool {
	if s.spare || s.unlimited || s.load == nil && s.loadMany == nil && s.loadEach == nil || g.cfg.HedgeAfter == off || g.cfg.FailClosed {
		return false
	}
	return s.isCheaper(g, key) && !scopeOf(ctx, g).isTransactions()
}

// won is the answer of a load beside Redis.
type won struct {
	answer
	joined bool
}

// race waits, and hedges beside that: the first answer wins. Won: that is the hedge's, and the wait has been given up, after keep.
func race[R any](ctx context.Context, wait func(context.Context) error, hedge func(context.Context) (R, bool), keep func()) (r R, won bool, err error) {
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	hedging, drop := context.WithCancel(ctx)
	defer drop()
	ended := make(chan struct{})
	go func() { // owner: the call; stop: drop; joined below
		defer close(ended)
		if r, won = hedge(hedging); won {
			keep()
			stop(errHedged)
		}
	}()
	err = wait(within)
	drop()
	<-ended
	if err == nil || !errors.Is(context.Cause(within), errHedged) {
		won = false
	}
	return r, won, err
}

// beside waits for Redis, which is late, and loads beside that if the call may. Won: that was faster.
func (q query[V]) beside(ctx context.Context, wait func(context.Context) error, keep func()) (w won, is bool, err error) {
	if q.besides || !q.spec.mayHedge(ctx, q.guard, q.key) {
		return w, false, wait(ctx)
	}
	return q.race(ctx, wait, keep)
}

// race is race with a load in a spare slot, and counts it if that wins.
func (q query[V]) race(ctx context.Context, wait func(context.Context) error, keep func()) (w won, is bool, err error) {
	w, is, err = race(ctx, wait, func(ctx context.Context) (won, bool) { return q.hedge(ctx, limit.Slot{}) }, keep)
	if is {
		q.guard.hedgesWon.Add(1)
	}
	return w, is, err
}

// hedge loads in a flight that all callers of the instance share, and which may have begun. It answers only if the load is good for
// this call: failures are not, as Redis may have the value.
func (q query[V]) hedge(ctx context.Context, s limit.Slot) (w won, is bool) {
	g := q.guard
	j := q.job(ctx, nil, false)
	j.spare, j.scope.nested = true, false
	for ctx := outsideLoads(ctx); ; s = (limit.Slot{}) {
		given := s
		t, err := g.enter(ctx, j, hedged, func(ctx context.Context, publish func(answer)) answer {
			return g.runHedge(ctx, j, given, publish)
		})
		if t.Joined || err != nil {
			g.loaders.limits.Free(given) // before the wait: the flight may wait for this very slot
		}
		if err != nil {
			return w, false
		}
		a, err := g.awaitTicket(ctx, t, j.key, q.asked)
		if err != nil {
			return w, false
		}
		if a.answers(q.asked, t.Joined) {
			return won{a, t.Joined}, a.err == nil || a.absent
		}
		if !g.hedgeAgain(ctx, q.key) {
			return w, false
		}
	}
}

// hedgeAgain waits before the next load: Redis has answered something, so the answer to this call may be about to come. In a part that is slow
// there was no such answer.
func (g *Guard) hedgeAgain(ctx context.Context, key string) bool {
	return g.isSlow(key) || lifecycle.Sleep(ctx, g.lateAfter(g.breakerOf(key)))
}

// runHedge is the run of such a flight: it loads in the slot, or waits for a spare one. Then it stays until Redis has answered something, so
// that a Redis that stops for a while causes one load of a key, and no more. It need not where Redis is known to be slow.
func (g *Guard) runHedge(ctx context.Context, j *job, s limit.Slot, publish func(answer)) answer {
	defer j.skip()
	part := g.breakers.Of(j.valueKey)
	if s.IsNone() {
		var err error
		if s, err = g.loaders.takeSlot(ctx, j); err != nil {
			return answer{err: err}
		}
	}
	answered := part.Answered()
	g.hedged.Add(1)
	a := g.loadIn(ctx, j, s, Loaded)
	switch {
	case a.err != nil && !a.absent:
		if ctx.Err() == nil {
			j.policy.cost.Failed(time.Now())
		}
	case !part.IsSlow():
		publish(a)
		select {
		case <-answered:
		case <-ctx.Done():
		}
	}
	return a
}

// retrieveSlowly answers a call whose part is slow: from a load if there is a slot for it, and only otherwise from Redis, if that is faster.
func (q query[V]) retrieveSlowly(ctx context.Context, past intent.Past) (v V, how Outcome, err error) {
	g := q.guard
	need := limit.Need{Spare: true, Kind: q.spec.policyOf(g).loadSlots()}
	q.besides = true
	if s := g.loaders.limits.AtHand(need); !s.IsNone() {
		if w, is := q.hedge(ctx, s); is {
			g.hedgesWon.Add(1)
			return unpack[V](w.answer, w.joined)
		}
		return q.ask(ctx, past)
	}
	if old, ok := q.spec.lateFromLocal(g, q.key); ok {
		return old.result()
	}
	wait := func(ctx context.Context) error {
		v, how, err = q.ask(ctx, past)
		return err
	}
	w, is, err := q.race(ctx, wait, func() {})
	if is {
		return unpack[V](w.answer, w.joined)
	}
	return v, how, err
}

// lateFromLocal is staleFromLocal while Redis has only not answered yet: what the tier may not know of must be nothing.
func (s loadSpec[V]) lateFromLocal(g *Guard, key string) (f found[V], ok bool) {
	if g.local == nil || !g.local.IsInformed(key) {
		return f, false
	}
	return s.staleFromLocal(g, key)
}

// awaitRead waits for a read. Done: the call has its answer otherwise, or will not get one.
func (q *query[V]) awaitRead(ctx context.Context, read *send.Read) (v V, how Outcome, done bool, err error) {
	late, err := read.WaitLate(ctx)
	var w won
	if late {
		if old, ok := q.spec.lateFromLocal(q.guard, q.key); ok {
			v, how, err = old.result()
			return v, how, true, err
		}
		wait := read.Wait
		if q.spec.mayGiveUp(ctx, q.guard, q.key) {
			wait = q.waitBriefly(read)
		}
		w, done, err = q.beside(ctx, wait, func() {})
		switch {
		case err != nil && ctx.Err() == nil && errors.Is(err, errLate):
			v, how, err = q.bypass(ctx, q.guard.redisError("get", q.key, send.ErrTimeout))
			return v, how, true, err
		case done:
			v, how, err = unpack[V](w.answer, w.joined)
			return v, how, true, err
		}
	}
	if err != nil {
		return v, "", true, unanswered(ctx, q.key, err)
	}
	return v, "", false, nil
}

// waitBriefly waits for a read, which is late, for as long as reads take at most; then the error is errLate.
func (q *query[V]) waitBriefly(read *send.Read) func(context.Context) error {
	part, longest := q.guard.breakerOf(q.key), q.guard.cfg.RedisTimeout
	left := part.Timeout(longest) - q.guard.lateAfter(part)
	return func(ctx context.Context) error {
		within, stop := context.WithTimeoutCause(ctx, left, errLate)
		defer stop()
		err := read.Wait(within)
		if err != nil && errors.Is(context.Cause(within), errLate) {
			return errLate
		}
		return err
	}
}

// await waits for the answer of a flight that asks for the lease.
func (q *query[V]) await(ctx context.Context, t ticket) (w won, err error) {
	ctx, end := q.guard.beginJoined(ctx, t, q.key)
	if t.Late(ctx) {
		w, err = q.awaitLate(ctx, t)
	} else {
		w.joined = t.Joined
		w.answer, err = waitFor(ctx, t, q.asked)
	}
	return w, endJoined(end, w.answer, err)
}

// awaitLate goes on with that when Redis keeps the flight waiting.
func (q query[V]) awaitLate(ctx context.Context, t ticket) (won, error) {
	own := won{joined: t.Joined}
	w, is, err := q.beside(ctx, func(ctx context.Context) (err error) {
		own.answer, err = waitFor(ctx, t, q.asked)
		return err
	}, t.Keep)
	if is {
		return w, nil
	}
	return own, err
}

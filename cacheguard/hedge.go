package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/send"
)

var (
	errNoHedge = errors.New("it would be too late, or another load of the key runs")
	errLate    = fmt.Errorf("redis takes longer than it ever does: %w", send.ErrTimeout)
)

// lateAfter is how long Redis may keep a call waiting; 0: for ever.
func (g *Guard) lateAfter(b *breaker.Breaker) time.Duration {
	switch after := g.cfg.HedgeAfter; {
	case g.cfg.FailClosed, after == off && !g.cfg.follows:
		return 0
	case after == off:
		return g.timeoutOf(b)
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

// timeoutOf is how long a call waits for Redis, before it loads instead: as long as Redis ever needs, and what a load
// costs.
func (g *Guard) timeoutOf(b *breaker.Breaker) time.Duration {
	return min(max(b.Timeout(g.cfg.RedisTimeout), g.loaders.cost.Average()), g.cfg.RedisTimeout)
}

// mayGiveUp reports whether a call with the spec, which loads nothing beside Redis, may load instead of waiting for all
// of RedisTimeout.
func (s *loadSpec[V]) mayGiveUp(ctx context.Context, g *Guard, key string) bool {
	return g.cfg.follows && !g.cfg.FailClosed && s.loadsAnew() && !s.spare && !s.mayHedge(ctx, g, key) &&
		s.policy.kind.cost.Worth(time.Now(), math.MaxInt64) // unless one has just failed
}

// isCheaper reports whether a load takes less time than a request for the key that is late, as far as is known.
func (s *loadSpec[V]) isCheaper(g *Guard, key string) bool {
	return s.policy.kind.cost.Worth(time.Now(), g.breakerOf(key).Expected(g.cfg.RedisTimeout))
}

// loadsBeside reports whether calls load beside a Redis that is late.
func (g *Guard) loadsBeside() bool { return g.cfg.HedgeAfter != off && !g.cfg.FailClosed }

// isSlow reports whether calls for the key may load first.
func (g *Guard) isSlow(key string) bool {
	return g.counts.slowParts.Load() > 0 && g.loadsBeside() && g.breakerOf(key).IsSlow()
}

// loadsAnew reports whether the spec is for a Get or a GetMany, whose loads need nothing of what is stored.
func (s *loadSpec[V]) loadsAnew() bool {
	return s.loader != nil || s.loadMany != nil || s.loadEach != nil
}

// mayHedge reports whether calls with the spec may load beside Redis.
func (s *loadSpec[V]) mayHedge(ctx context.Context, g *Guard, key string) bool {
	if s.spare || s.unlimited || !s.loadsAnew() || !g.loadsBeside() {
		return false
	}
	return s.isCheaper(g, key) && !scopeOf(ctx, g).isTransactions() && g.loaders.left(s.policy.kind, key) == nil
}

// hedging is a query whose reads may be late.
type hedging[V any] struct {
	*query[V]

	load *ticket // beside Redis; nil: there is none
}

// await waits for a read of a Get or a Fetch. If it is late, or at once where the part is slow, a Get loads beside
// that, and the first answer is its own. Done: the call has its answer otherwise, or will not get one.
func (h *hedging[V]) await(ctx context.Context, r *wanted[V], read *send.Read) (v V, how Outcome, done bool, err error) {
	first := h.guard.isSlow(r.key) && h.spec.mayHedge(ctx, h.guard, r.key)
	late := first && !read.IsAnswered()
	if !late {
		late, err = read.WaitLate(ctx)
	}
	switch {
	case late:
		return h.awaitLate(ctx, r, read, first)
	case err != nil:
		return v, "", true, unanswered(ctx, r.key, err)
	}
	return v, "", false, nil
}

func (h *hedging[V]) awaitLate(ctx context.Context, r *wanted[V], read *send.Read, first bool) (v V, how Outcome, done bool, err error) {
	g := h.guard
	if !first || !g.loaders.limits.IsAtHand(limit.Need{Spare: true, Kind: h.spec.policy.kind.loadSlots}) {
		if old, ok := h.spec.lateFromLocal(g, r.key); ok {
			read.Leave()
			v, how, err = old.result()
			return v, how, true, err
		}
	}
	if a, won := h.beside(ctx, read); won {
		g.counts.hedgesWon.Add(1)
		h.spec.fillLocal(g, *r, read)
		v, how, err = unpack[V](a)
		return v, how, true, err
	}
	switch err = h.spec.waitLate(ctx, g, r.key, read); {
	case err == nil:
		return v, "", false, nil
	case ctx.Err() == nil && errors.Is(err, errLate):
		v, how, err = h.bypass(ctx, g.redisError("get", r.key, err))
	default:
		err = unanswered(ctx, r.key, err)
	}
	return v, how, true, err
}

// beside loads until the read is answered, in a flight that all callers of the instance share, and which may have
// begun: then this call may need the next one. Not won: its failure is nobody's answer, as Redis may have the value.
func (h *hedging[V]) beside(ctx context.Context, read *send.Read) (a answer, won bool) {
	g, key := h.guard, h.spec.key
	for h.load != nil || h.spec.mayHedge(ctx, g, key) {
		if h.load == nil {
			j := h.loadOf(ctx, key, nil)
			j.spare = true
			if j.ends = deadlineOf(ctx); !j.isInTime() {
				break
			}
			t, err := g.enter(outsideLoads(ctx), j, hedged, func(ctx context.Context, publish func(answer)) answer { return g.runHedge(ctx, j, publish) })
			if err != nil {
				break
			}
			h.load = &t
		}
		var err error
		if a, err = g.awaitTicket(ctx, *h.load, key, h.asked, read.Answered()); errors.Is(err, flight.ErrElse) {
			if read.IsAnswered() {
				break
			}
			continue // it has become late
		}
		h.load = nil
		if err != nil || a.answers(h.asked) {
			return a, err == nil && (a.err == nil || a.absent)
		}
	}
	return a, false
}

// answer waits for the load beside a Redis that does not have the value, or gives no answer, if its loader runs, or
// has returned and nobody has had time to say so: that is nearer than what the next one would return. Done: it is the
// call's answer.
func (h *hedging[V]) answer(ctx context.Context, next action) (a answer, done bool) {
	if h.load == nil || next != doRebuild && next != doBypass || !h.load.HasBegun() {
		return a, false
	}
	t := *h.load
	h.load = nil
	a, err := h.guard.awaitTicket(ctx, t, h.spec.key, h.asked, nil)
	return a, err == nil && a.answers(h.asked) && (a.err == nil || a.absent)
}

// leave leaves the load beside Redis, which ends with its last caller.
func (h *hedging[V]) leave() {
	if h.load != nil {
		h.load.Leave()
		h.load = nil
	}
}

// isInTime reports whether the load may return before the deadline of the call that began it, as far as is known.
func (j *load) isInTime() bool {
	return time.Until(j.ends) > j.policy.kind.cost.Average()
}

// deadlineOf is far away if the context has none.
func deadlineOf(ctx context.Context) time.Time {
	if ends, has := ctx.Deadline(); has {
		return ends
	}
	return time.Now().Add(math.MaxInt64)
}

// lateFromLocal is staleFromLocal while Redis has only not answered yet: what the tier may not know of must be nothing.
func (s *loadSpec[V]) lateFromLocal(g *Guard, key string) (f found[V], ok bool) {
	if g.local == nil || !g.local.IsInformed(key) {
		return f, false
	}
	return s.staleFromLocal(g, key)
}

// waitLate waits for a read of the key, which is late: if the call may load instead, for as long as reads take at most;
// then the error is errLate.
func (s *loadSpec[V]) waitLate(ctx context.Context, g *Guard, key string, read *send.Read) error {
	if !s.mayGiveUp(ctx, g, key) {
		return read.Wait(ctx)
	}
	within, stop := context.WithTimeoutCause(ctx, g.timeoutOf(g.breakerOf(key))-read.Age(), errLate)
	defer stop()
	err := read.Wait(within)
	if err != nil && errors.Is(context.Cause(within), errLate) {
		return errLate
	}
	return err
}

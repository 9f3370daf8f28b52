package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"

	"github.com/cacheguard/go/internal/cache/gather"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/cache/write"
)

// Verified counts hits that were compared with the source; see VerifyConfig.
type Verified struct {
	Matched    uint64 // the source had the same
	Stale      uint64 // the source had another value, and the cache, local or Redis, still had the old one a while later: the Logger has the key
	Superseded uint64 // the source had another value, and a while later the cache had that too, or none
	Failed     uint64 // the source or Redis could not be read
}

// Verified returns the counts since New.
func (g *Guard) Verified() Verified {
	if g == nil {
		return Verified{}
	}
	v := &g.verified
	return Verified{v.Matched.Load(), v.Stale.Load(), v.Superseded.Load(), v.Failed.Load()}
}

// sample has some answers compared in the background, but none with what only a transaction sees: one in OneIn hits with the source (Verify), and a
// share of what was loaded where Serve lets the cache serve nothing with the cache (Shadow).
func sample[V any](ctx context.Context, g *Guard, spec loadSpec[V], key string, v V, how Outcome, err error) {
	isShadow, isHit := how == Bypassed && (err == nil || absentAlone(err)), err == nil && (how == Hit || how == Local)
	switch {
	case scopeOf(ctx, g).isTransactions():
		return
	case isShadow && rand.Float64() < g.cfg.Shadow && g.off.Unserved(key) && !g.off.Bypassed():
	case isHit && g.cfg.Verify.OneIn != 0 && rand.N(g.cfg.Verify.OneIn) == 0:
	default:
		return
	}
	spec, ok := spec.alone(key)
	if !ok {
		return
	}
	ctx = outsideLoads(context.WithoutCancel(ctx))
	spec.key, spec.valueKey = key, spec.valueKeyOf(g, key)
	q := query[V]{guard: g, spec: spec, asked: g.clock.Now()}
	switch {
	case isHit:
		g.verifier.Compare(ctx, &comparison[V]{q, &v}, &g.verified)
	case err != nil:
		q.shadow(ctx, nil)
	default:
		q.shadow(ctx, &v)
	}
}

// alone is the spec for a load of one key in spare slots, whatever the call was; not ok: it has none that can be compared.
func (s loadSpec[V]) alone(key string) (_ loadSpec[V], ok bool) {
	if many := s.loadMany; many != nil {
		s.run = func(ctx context.Context) (any, error) { return many.one(ctx, gather.Member{Key: key}) }
	}
	s.loadMany, s.gathering, s.spare = nil, nil, true
	return s, s.run != nil || s.loader != nil || s.loadEach != nil
}

// comparison compares a value that was served with the source.
type comparison[V any] struct {
	query[V]
	served *V // nil: absence
}

// Source loads the value as callers would get it now, unless loaders are busy with callers that wait.
func (c *comparison[V]) Source(ctx context.Context) (value any, done bool, err error) {
	loaders, j := &c.guard.loaders, c.loadOf(ctx, c.spec.key, nil)
	s := loaders.limits.Try(ctx, loaders.need(j))
	if s.IsNone() {
		return nil, false, nil
	}
	out := loaders.run(ctx, j, s)
	if out.absent {
		return (*V)(nil), true, nil
	}
	return out.value, true, out.err
}

// IsServed reports whether the value, when encoded, is the one that was served.
func (c *comparison[V]) IsServed(value any) bool {
	v := valueOf[V](value)
	if v == nil || c.served == nil {
		return v == c.served
	}
	var shape protocol.ShapeOf[V]
	kindA, x, err1 := shape.Encode(c.spec.policy.codec, c.served)
	kindB, y, err2 := shape.Encode(c.spec.policy.codec, v)
	return err1 == nil && err2 == nil && kindA == kindB && bytes.Equal(x, y)
}

// IsStillServed reports whether the cache has the same value now, however old, and logs that.
func (c *comparison[V]) IsStillServed(ctx context.Context) (bool, error) {
	q := query[V]{guard: c.guard, asked: c.guard.clock.Now()}
	q.spec.load, q.spec.cacheOnly, q.spec.judge = c.spec.load, true, func(V) Verdict { return Serve }
	now, is, err := q.cached(ctx)
	if is = is && c.IsServed(now); is {
		if why := c.guard.journal.Behind(); why != "" {
			c.guard.tell(ctx, report.Behind, c.spec.key, nil, "while", why)
		} else {
			c.guard.tell(ctx, report.Outdated, c.spec.key, nil)
		}
	}
	if errors.Is(err, ErrNotCached) {
		err = nil
	}
	return is, err
}

// cached is what the cache answers to the call, nil for absence; not is: what a load does.
func (q *query[V]) cached(ctx context.Context) (v *V, is bool, err error) {
	answer, ok := q.spec.fromLocal(q.guard, q.spec.key)
	if !ok {
		v = new(V)
		*v, answer.how, err = q.read(ctx, write.Past{})
		answer.value = v
	}
	switch {
	case answer.how == Negative:
		return nil, true, nil
	case absentAlone(err) && answer.how != "":
		err = nil
	}
	return answer.value, err == nil && (answer.how == Hit || answer.how == Local || answer.how == Stale), err
}

package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"

	"github.com/cacheguard/go/internal/cache/gather"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/report"
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
	switch {
	case isHit:
		g.verifier.Compare(ctx, &comparison{guard: g, job: spec.loadOf(g, key, scopeOf(ctx, g), nil), served: &v}, &g.verified)
	case err != nil:
		shadow(ctx, g, spec, key, absence{})
	default:
		shadow(ctx, g, spec, key, &v)
	}
}

// alone is the spec for a load of one key in spare slots, whatever the call was; not ok: it has none that can be compared.
func (s loadSpec[V]) alone(key string) (_ loadSpec[V], ok bool) {
	loadMany, loadEach := s.loadMany, s.loadEach
	s.loadMany, s.loadEach, s.gathering, s.spare = nil, nil, nil, true
	switch {
	case s.loader != nil:
	case loadMany != nil:
		s.loader = func(ctx context.Context) (V, error) {
			values, err := loadMany(ctx, []gather.Member{{Key: key}})
			value := valueOf[V](values[key])
			if err == nil && value == nil {
				err = ErrNotFound
			}
			if err != nil {
				return *new(V), err
			}
			return *value, nil
		}
	case loadEach != nil:
		s.loader = func(ctx context.Context) (V, error) { return loadEach(ctx, key) }
	}
	return s, s.loader != nil
}

// comparison compares a value that was served with the source.
type comparison struct {
	guard  *Guard
	job    *load
	served any // *V, or absence
}

// absence stands for the value of what does not exist.
type absence struct{}

// Source loads the value as callers would get it now, unless loaders are busy with callers that wait.
func (c *comparison) Source(ctx context.Context) (value any, done bool, err error) {
	loaders := &c.guard.loaders
	s := loaders.limits.Try(ctx, loaders.need(c.job))
	if s.IsNone() {
		return nil, false, nil
	}
	out := loaders.run(ctx, c.job, s)
	if out.absent {
		return absence{}, true, nil
	}
	return out.value, true, out.err
}

// IsServed reports whether the value, when encoded, is the one that was served.
func (c *comparison) IsServed(value any) bool {
	if value == (absence{}) || c.served == (absence{}) {
		return value == c.served
	}
	kindA, x, err1 := c.job.shape.Encode(c.job.policy.codec, c.served)
	kindB, y, err2 := c.job.shape.Encode(c.job.policy.codec, value)
	return err1 == nil && err2 == nil && kindA == kindB && bytes.Equal(x, y)
}

// IsStillServed reports whether a hit would return the same value now, and logs that.
func (c *comparison) IsStillServed(ctx context.Context) (bool, error) {
	now, is, err := c.cached(ctx)
	if is = is && c.IsServed(now); is && err == nil {
		c.guard.tell(ctx, report.Outdated, c.job.key, nil)
	}
	return is, err
}

// cached is what a hit would return now, if it would be one.
func (c *comparison) cached(ctx context.Context) (value any, is bool, err error) {
	g, j := c.guard, c.job
	if g.local != nil {
		if item := g.local.Get(j.key); item != nil {
			return orAbsence(item.Value), true, nil
		}
	}
	epochs := j.reading(g)
	read, err := g.link.Get(ctx, j.valueKey, epochs.Keys()...)
	if err == nil {
		err = read.Err
	}
	if err != nil || read.Raw == nil {
		return nil, false, err
	}
	e, value, err := j.decode(&g.cfg, read.Raw)
	if err != nil {
		return nil, false, nil //nolint:nilerr // what cannot be decoded is not served
	}
	epochs.Take(read)
	holds, redisErr, err := epochs.Check(ctx, e.Stamp)
	if e.Kind == protocol.Absent {
		value = nil
	}
	return orAbsence(value), holds, errors.Join(err, redisErr)
}

func orAbsence(value any) any {
	if value == nil {
		return absence{}
	}
	return value
}

package cacheguard

import (
	"bytes"
	"context"
	"errors"

	"github.com/cacheguard/go/internal/cache/gather"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/verify"
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
	v := &g.verifier
	return Verified{v.Matched.Load(), v.Stale.Load(), v.Superseded.Load(), v.Failed.Load()}
}

// loadOne returns the load of one key, of either kind; nil: the spec has none that can be compared.
func (s loadSpec[V]) loadOne(key string) func(context.Context) (V, error) {
	switch {
	case s.loader != nil:
		return s.loader
	case s.loadMany != nil:
		return func(ctx context.Context) (V, error) {
			values, err := s.loadMany(ctx, []gather.Member{{Key: key}})
			value := valueOf[V](values[key])
			if err == nil && value == nil {
				err = ErrNotFound
			}
			if err != nil {
				return *new(V), err
			}
			return *value, nil
		}
	case s.loadEach != nil:
		return func(ctx context.Context) (V, error) { return s.loadEach(ctx, key) }
	}
	return nil
}

// comparison compares a value that was served with the source.
type comparison struct {
	guard  *Guard
	job    *load
	served any // *V, or absence
}

// absence stands for the value of what does not exist.
type absence struct{}

func (c *comparison) closely() verify.Comparison {
	still := func(ctx context.Context) (is bool, err error) {
		if is, err = c.isStillServed(ctx); is && err == nil {
			c.guard.journal.Outdated(c.job.key)
		}
		return is, err
	}
	return verify.Comparison{Source: c.load, IsServed: c.isServed, StillServed: still}
}

// load loads the value as callers would get it now, unless loaders are busy with callers that wait.
func (c *comparison) load(ctx context.Context) (value any, done bool, err error) {
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

// isStillServed reports whether a hit would return the same value now.
func (c *comparison) isStillServed(ctx context.Context) (bool, error) {
	g, j := c.guard, c.job
	if g.local != nil {
		if item := g.local.Get(j.key); item != nil {
			return c.isServed(orAbsence(item.Value)), nil
		}
	}
	epochs := j.reading(g)
	read, err := g.link.Get(ctx, j.valueKey, epochs.Keys()...)
	if err == nil {
		err = read.Err
	}
	if err != nil || read.Raw == nil {
		return false, err
	}
	e, now, err := j.decode(&g.cfg, read.Raw)
	if err != nil {
		return false, nil //nolint:nilerr // what cannot be decoded is not served
	}
	epochs.Take(read)
	holds, redisErr, err := epochs.Check(ctx, e.Stamp)
	if e.Kind == protocol.Absent {
		now = absence{}
	}
	return holds && c.isServed(now), errors.Join(err, redisErr)
}

func orAbsence(value any) any {
	if value == nil {
		return absence{}
	}
	return value
}

// isServed reports whether the value, when encoded, is the one that was served.
func (c *comparison) isServed(value any) bool {
	if value == (absence{}) || c.served == (absence{}) {
		return value == c.served
	}
	kindA, x, err1 := c.job.shape.Encode(c.job.policy.codec, c.served)
	kindB, y, err2 := c.job.shape.Encode(c.job.policy.codec, value)
	return err1 == nil && err2 == nil && kindA == kindB && bytes.Equal(x, y)
}

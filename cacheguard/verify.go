package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/verify"
)

// VerifyConfig lets the Guard compare some of the hits of Get and GetMany with the source, to see how consistent cache and
// source are while both are in use.
//
// To compare a hit, the Guard runs the loader of the call again, perhaps after the call has returned. The loader of GetMany
// gets one key. The load takes one of MaxLoads, and Hooks.OnLoad is called. A loader must not return something different
// each time.
//
// The Guard skips a hit when all of MaxLoads are taken, or 4 comparisons are under way. It never compares remembered absence,
// stale values, or values of Fetch.
type VerifyConfig struct {
	// OneIn is how many hits there are for each one compared. Default: 0, none; it then costs nothing.
	OneIn int

	// Delay is how long after the hit the source is read. If that has another value, the cache is read again after
	// another Delay: a write and its Invalidate should be over by then. Default: 1 second.
	Delay time.Duration
}

const defaultVerifyDelay = time.Second

// Verified counts hits that were compared with the source; see VerifyConfig.
type Verified struct {
	Matched    uint64 // the source had the same
	Stale      uint64 // the source had another value, and the cache, local or Redis, still had the old one a while later
	Superseded uint64 // the source had another value, and a while later the cache had that too, or none
	Failed     uint64 // the source or Redis could not be read
}

// Verify returns the counts since New.
func (g *Guard) Verify() Verified {
	if g == nil {
		return Verified{}
	}
	v := &g.verifier
	return Verified{v.Matched.Load(), v.Stale.Load(), v.Superseded.Load(), v.Failed.Load()}
}

func (c *VerifyConfig) check(bad func(field, format string, args ...any)) {
	if c.OneIn < 0 {
		bad("Verify.OneIn", "%d is negative", c.OneIn)
	}
	if c.Delay < 0 || c.Delay > 0 && c.Delay < time.Millisecond {
		bad("Verify.Delay", "%v is shorter than a millisecond (is the unit missing?)", c.Delay)
	}
}

// sample lets one in OneIn hits be compared.
func sample[V any](ctx context.Context, g *Guard, spec loadSpec[V], key string, served V, how Outcome, err error) {
	if err != nil || how != Hit && how != Local || rand.N(g.cfg.Verify.OneIn) != 0 {
		return
	}
	if spec.load = spec.loadOne(key); spec.load == nil {
		return
	}
	ctx = outsideLoads(context.WithoutCancel(ctx))
	j := spec.job(g, key, scopeOf(ctx, g, key), nil)
	isServed := func(value any) bool { return j.same(&served, value) }
	g.verifier.Compare(ctx, verify.Comparison{
		Source: func(ctx context.Context) (any, bool, error) { return g.loadToCompare(ctx, j) }, IsServed: isServed,
		StillServed: func(ctx context.Context) (bool, error) { return g.stillServed(ctx, j, isServed) },
	})
}

// loadOne returns the load of one key, of either kind; nil: the spec has none that can be compared.
func (s loadSpec[V]) loadOne(key string) func(context.Context) (V, error) {
	switch {
	case s.load != nil:
		return s.load
	case s.loadMany != nil:
		return func(ctx context.Context) (V, error) {
			values, err := s.loadMany(ctx, []string{key})
			value, ok := values[key]
			if err == nil && !ok {
				err = ErrNotFound
			}
			return value, err
		}
	case s.loadEach != nil:
		return func(ctx context.Context) (V, error) { return s.loadEach(ctx, key) }
	}
	return nil
}

// loadToCompare loads a value as callers would get it now, unless loaders are busy with callers that wait.
func (g *Guard) loadToCompare(ctx context.Context, j *job) (value any, done bool, err error) {
	s := g.loaders.limits.TryOfFleet(ctx, g.loaders.need(j))
	if s.IsNone() {
		return nil, false, nil
	}
	out := g.loaders.run(ctx, j, s)
	if out.absent {
		return nil, true, nil
	}
	return out.value, true, out.err
}

// stillServed reports whether a hit would return the served value now.
func (g *Guard) stillServed(ctx context.Context, j *job, isServed func(any) bool) (bool, error) {
	if g.local != nil {
		if item := g.local.Get(j.key); item != nil {
			return item.Value != nil && isServed(item.Value), nil
		}
	}
	epochs := g.epochs.Begin(j.key, j.valueKey, j.kind, j.known)
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
	return holds && e.Kind != protocol.Absent && isServed(now), errors.Join(err, redisErr)
}

// same reports whether the values, of the job's type, are the same when they are encoded.
func (j *job) same(a, b any) bool {
	kindA, x, err1 := j.shape.Encode(j.policy.codec, a)
	kindB, y, err2 := j.shape.Encode(j.policy.codec, b)
	return err1 == nil && err2 == nil && kindA == kindB && bytes.Equal(x, y)
}

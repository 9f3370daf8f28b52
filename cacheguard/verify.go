package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/protocol"
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

const (
	defaultVerifyDelay = time.Second
	maxVerifying       = 4 // comparisons at once; hits beyond that are not compared
)

// Verified counts hits that were compared with the source; see VerifyConfig.
type Verified struct {
	Matched    uint64 // the source had the same
	Stale      uint64 // the source had another value, and the cache, local or Redis, still had the old one a while later
	Superseded uint64 // the source had another value, and a while later the cache had that too, or none
	Failed     uint64 // the source or Redis could not be read
}

// Verify is Verified.
//
// Deprecated: use Verified.
func (g *Guard) Verify() Verified { return g.Verified() }

// Verified returns the counts since New.
func (g *Guard) Verified() Verified {
	if g == nil {
		return Verified{}
	}
	v := &g.verifier
	return Verified{v.matched.Load(), v.stale.Load(), v.superseded.Load(), v.failed.Load()}
}

// verifier counts what Verified says.
type verifier struct {
	running                            atomic.Int64
	matched, stale, superseded, failed atomic.Uint64
}

func (c *VerifyConfig) check(bad func(field, format string, args ...any)) {
	if c.OneIn < 0 {
		bad("Verify.OneIn", "%d is negative", c.OneIn)
	}
	if c.Delay < 0 || c.Delay > 0 && c.Delay < time.Millisecond {
		bad("Verify.Delay", "%v is shorter than a millisecond (is the unit missing?)", c.Delay)
	}
}

// sample lets one in OneIn hits be compared. A value with a judge changes with each load, and cannot be
// compared.
func sample[V any](ctx context.Context, g *Guard, key string, hit found[V], spec loadSpec[V]) {
	if g.cfg.Verify.OneIn == 0 || hit.value == nil || hit.how == Stale || rand.N(g.cfg.Verify.OneIn) != 0 {
		return
	}
	if load := spec.loadOne(key); load != nil {
		verify(ctx, g, key, hit.value, load, spec)
	}
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

// verify compares a hit in the background, unless too many are being compared.
func verify[V any](
	ctx context.Context, g *Guard, key string, served *V, load func(context.Context) (V, error), spec loadSpec[V],
) {
	if g.verifier.running.Add(1) > maxVerifying {
		g.verifier.running.Add(-1)
		return
	}
	ctx = outsideLoads(context.WithoutCancel(ctx))
	spec.load = load
	c := comparison{guard: g, job: spec.job(g, key, scopeOf(ctx, g, key), nil), served: served}
	begun := g.life.Try(func() { // stop: the end of the Guard and LoadTimeout
		defer g.verifier.running.Add(-1)
		if count := c.run(ctx); count != nil {
			count.Add(1)
		}
	})
	if !begun {
		g.verifier.running.Add(-1)
	}
}

// comparison compares a value that was served with the source.
type comparison struct {
	guard  *Guard
	job    *job
	served any // *V
}

// run returns the counter of what it finds; nil if nothing could be compared now.
func (c *comparison) run(ctx context.Context) *atomic.Uint64 {
	g, v := c.guard, &c.guard.verifier
	ctx, cancel := c.untilClosed(ctx)
	defer cancel()
	if !c.pause() {
		return nil
	}
	s := g.loaders.trySlotOfFleet(ctx, c.job)
	if s.right == noSlot {
		return nil // loaders are busy with callers that wait
	}
	out := g.loaders.run(ctx, c.job, s)
	if out.err != nil && !out.absent {
		return &v.failed
	}
	if out.err == nil && c.isServed(out.value) {
		return &v.matched
	}
	if !c.pause() {
		return nil
	}
	switch still, err := c.stillServed(ctx); {
	case err != nil:
		return &v.failed
	case still:
		return &v.stale
	}
	return &v.superseded
}

// stillServed reports whether a hit would return the same value now.
func (c *comparison) stillServed(ctx context.Context) (bool, error) {
	g := c.guard
	if g.local != nil {
		if item := g.local.Get(c.job.key); item != nil {
			return item.Value != nil && c.isServed(item.Value), nil
		}
	}
	epochs := g.epochs.Begin(c.job.key, c.job.valueKey, c.job.kind, c.job.known)
	read, err := g.link.Get(ctx, c.job.valueKey, epochs.Keys()...)
	if err == nil {
		err = read.Err
	}
	if err != nil || read.Raw == nil {
		return false, err
	}
	e, now, err := c.job.decode(&g.cfg, read.Raw)
	if err == nil {
		epochs.Take(read)
		if holds, redisErr, err := epochs.Check(ctx, e.Stamp); err != nil || redisErr != nil || !holds {
			return false, errors.Join(err, redisErr)
		}
	}
	return err == nil && e.Kind != protocol.Absent && c.isServed(now), nil
}

// isServed reports whether the value, when encoded, is the one that was served.
func (c *comparison) isServed(value any) bool {
	kindA, x, err1 := c.job.shape.Encode(c.job.policy.codec, c.served)
	kindB, y, err2 := c.job.shape.Encode(c.job.policy.codec, value)
	return err1 == nil && err2 == nil && kindA == kindB && bytes.Equal(x, y)
}

// untilClosed returns a context that ends when the Guard is closed.
func (c *comparison) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	c.guard.life.Go(func() { // owner: the Guard; stop: the end of the Guard, or the context; joined by Close
		select {
		case <-c.guard.life.Ending.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// pause waits for Verify.Delay, and reports whether the Guard is still open.
func (c *comparison) pause() bool {
	over, stop := c.guard.cfg.clock.After(c.guard.cfg.Verify.Delay)
	defer stop()
	select {
	case <-over:
		return true
	case <-c.guard.life.Ending.Done():
		return false
	}
}

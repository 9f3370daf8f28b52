package cacheguard

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// VerifyConfig has the Guard compare some of the hits of Get with the source, to see how consistent cache and source are while
// both are in use.
type VerifyConfig struct {
	// OneIn is how many hits there are for each that is compared. Default: 0, none; it costs nothing then.
	OneIn int

	// Delay is how long after the hit the source is read, and how long after that, when it has another value, the cache
	// is looked at again: a write and its Invalidate should be over by then. Default: 1 second.
	Delay time.Duration
}

const (
	defaultVerifyDelay = time.Second
	maxVerifying       = 4 // comparisons at once; hits beyond that are not compared
)

// Verified counts hits that were compared with the source; see VerifyConfig.
type Verified struct {
	Matched    uint64 // the source had the same
	Stale      uint64 // the source had another value, and the cache still had the old one a while later
	Superseded uint64 // the source had another value, and so had the cache a while later, or none
	Failed     uint64 // the source or Redis could not be read
}

// Verify returns the counts since New.
func (g *Guard) Verify() Verified {
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

// sample has a hit compared, if its turn has come.
func sample[V any](ctx context.Context, g *Guard, key string, served *V, load func(context.Context) (V, error)) {
	if g.cfg.Verify.OneIn == 0 || served == nil || rand.N(g.cfg.Verify.OneIn) != 0 {
		return
	}
	if g.verifier.running.Add(1) > maxVerifying || !g.begin() {
		g.verifier.running.Add(-1)
		return
	}
	j := newJob(outsideLoads(ctx), g, key, g.redisKey(key), load)
	go func() { // owner: the Guard; stop: g.ending and LoadTimeout; joined by Close
		defer g.tasks.Done()
		defer g.verifier.running.Add(-1)
		if count := g.compare(outsideLoads(context.WithoutCancel(ctx)), j, served); count != nil {
			count.Add(1)
		}
	}()
}

// compare returns the counter of what it finds; nil if nothing could be compared now.
func (g *Guard) compare(ctx context.Context, j *job, served any) *atomic.Uint64 {
	v := &g.verifier
	ctx, cancel := g.untilClosed(ctx)
	defer cancel()
	if !g.pause(g.cfg.Verify.Delay) {
		return nil
	}
	s := g.trySlot(j)
	if s == noSlot {
		return nil // loaders are busy with callers that wait
	}
	out := g.runLoader(ctx, j, s)
	if out.err != nil && !out.absent {
		return &v.failed
	}
	if out.err == nil && g.same(j, served, out.value) {
		return &v.matched
	}
	if !g.pause(g.cfg.Verify.Delay) {
		return nil
	}
	read, err := g.reader.Get(ctx, j.valueKey)
	if err != nil || read.Err != nil {
		return &v.failed
	}
	if e, value, err := g.decode(read.Raw, j.shape); read.Raw != nil && err == nil && e.kind != kindAbsent &&
		g.same(j, served, value) {
		return &v.stale
	}
	return &v.superseded
}

// same reports whether two values are the same when they are encoded.
func (g *Guard) same(j *job, a, b any) bool {
	_, x, err1 := j.shape.encode(g.cfg.Codec, a)
	_, y, err2 := j.shape.encode(g.cfg.Codec, b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// untilClosed returns a context that ends when the Guard is closed.
func (g *Guard) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	g.tasks.Go(func() { // owner: the Guard; stop: g.ending, or the context; joined by Close
		select {
		case <-g.ending:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// pause waits, and reports whether the Guard is still open.
func (g *Guard) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.ending:
		return false
	}
}

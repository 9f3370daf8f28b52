package cacheguard

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/protocol"
)

// VerifyConfig has the Guard compare some of the hits of Get and GetMany with the source, to see how consistent cache and
// source are while both are in use.
//
// For that, the loader of the call runs again, perhaps after the call has returned, with one key if it is GetMany's, as one
// of MaxLoads and not if all are taken; Hooks.OnLoad is called. It must not return something else each time. At most 4
// comparisons are under way at once, and hits beyond that are not compared. Neither are remembered absence, stale values, and
// what Fetch returns.
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
	Stale      uint64 // the source had another value, and the cache, local or Redis, still had the old one a while later
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

// drawn reports whether it is a hit's turn to be compared.
func (g *Guard) drawn() bool { return g.cfg.Verify.OneIn > 0 && rand.N(g.cfg.Verify.OneIn) == 0 }

// verify has a hit compared, in the background. A nil value is remembered absence.
func verify[V any](ctx context.Context, g *Guard, key string, served *V, load func(context.Context) (V, error)) {
	if served == nil {
		return
	}
	if g.verifier.running.Add(1) > maxVerifying {
		g.verifier.running.Add(-1)
		return
	}
	ctx = outsideLoads(context.WithoutCancel(ctx))
	j := newJob(ctx, g, key, g.redisKey(key), load)
	begun := g.inTask(func() { // stop: g.ending and LoadTimeout
		defer g.verifier.running.Add(-1)
		if count := g.compare(ctx, j, served); count != nil {
			count.Add(1)
		}
	})
	if !begun {
		g.verifier.running.Add(-1)
	}
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
	switch still, err := g.serves(ctx, j, served); {
	case err != nil:
		return &v.failed
	case still:
		return &v.stale
	}
	return &v.superseded
}

// serves reports whether the value is what a hit would return now.
func (g *Guard) serves(ctx context.Context, j *job, value any) (bool, error) {
	if g.local != nil {
		if item := g.local.Get(j.key); item != nil {
			return item.Value != nil && g.same(j, value, item.Value), nil
		}
	}
	read, err := g.link.Get(ctx, j.valueKey)
	if err == nil {
		err = read.Err
	}
	if err != nil || read.Raw == nil {
		return false, err
	}
	e, now, err := g.decode(read.Raw, j.shape)
	return err == nil && e.Kind != protocol.Absent && g.same(j, value, now), nil
}

// same reports whether two values are the same when they are encoded.
func (g *Guard) same(j *job, a, b any) bool {
	kindA, x, err1 := j.shape.Encode(g.cfg.Codec, a)
	kindB, y, err2 := j.shape.Encode(g.cfg.Codec, b)
	return err1 == nil && err2 == nil && kindA == kindB && bytes.Equal(x, y)
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

// Package verify compares values that a cache has served with their source, in the background.
package verify

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// AtOnce is how many comparisons run at once. Others are left out.
const AtOnce = 4

// Verifier makes comparisons.
type Verifier struct {
	Delay time.Duration // before the source is read, and then before the cache is
	Clock clock.Clock
	Life  *lifecycle.Life // of the cache

	Running atomic.Int64
}

// Found counts what comparisons found.
type Found struct{ Matched, Stale, Superseded, Failed atomic.Uint64 }

// Comparison is about one value that was served.
type Comparison interface {
	// Source reads the source. The value is nil if there is none. Not done: it may not be read now.
	Source(ctx context.Context) (value any, done bool, err error)

	IsServed(value any) bool                         // is it the value that was served?
	IsStillServed(ctx context.Context) (bool, error) // would the cache serve it now?
}

// Compare compares a value, unless too many are being compared.
func (v *Verifier) Compare(ctx context.Context, c Comparison, found *Found) {
	v.Life.TryAtMost(AtOnce, &v.Running, func() { // stop: the cache and Source end
		if count := v.run(ctx, c, found); count != nil {
			count.Add(1)
		}
	})
}

// run returns the counter of what it finds; nil if nothing could be compared now.
func (v *Verifier) run(ctx context.Context, c Comparison, found *Found) *atomic.Uint64 {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.Life.Ending, cancel)()
	if !v.Clock.Sleep(v.Life.Ending, v.Delay) {
		return nil
	}
	value, done, err := c.Source(ctx)
	switch {
	case !done:
		return nil
	case err != nil:
		return &found.Failed
	case value != nil && c.IsServed(value):
		return &found.Matched
	case !v.Clock.Sleep(v.Life.Ending, v.Delay):
		return nil
	}
	switch still, err := c.IsStillServed(ctx); {
	case err != nil:
		return &found.Failed
	case still:
		return &found.Stale
	}
	return &found.Superseded
}

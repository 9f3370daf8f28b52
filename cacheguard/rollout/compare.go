package rollout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// comparing is in the context of a comparison, which Shares lets in.
type comparing struct{}

// Seen counts comparisons of one kind.
type Seen struct {
	Compared int // things
	Hits     int // of them, the cache had
	Old      int // and had an older value than the source, before and after the pause: something writes without Invalidate
	OtherOld int // of which the other answer was older
	Failed   int // the source failed, or ctx ended
}

// Comparer compares what a Cache has with what the source has, and with what somebody else answered, as the cache that
// was there before does. It needs nobody whom the cache serves. It is safe for concurrent use.
type Comparer[K comparable, V any] struct {
	Cache  *cacheguard.Cache[K, V]
	Source func(ctx context.Context, k K) (V, error) // which the Cache loads from
	Equal  func(a, b V) bool

	// NotFound is what Source and Cache return for a thing that does not exist, as CacheConfig.NotFound says. Default:
	// ErrNotFound, which counts in any case.
	NotFound error

	// Pause is how long a comparison waits when it has found a difference, as a write may be under way. Default: 1
	// second.
	Pause time.Duration

	// OnOld is called for each thing that is old, with what the cache has and what the source. Default: not at all.
	OnOld func(k K, cached, source V)

	mu   sync.Mutex
	seen Seen
}

// Seen is what it has seen so far.
func (c *Comparer[K, V]) Seen() Seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// Compare compares what there is of the thing; other, if not nil, is what somebody else answered for it. What the cache
// lacks is loaded by it, so that the next comparison finds it, as callers would have. Call it for a sample, apart from
// the requests: it asks the source, and may pause.
func (c *Comparer[K, V]) Compare(ctx context.Context, k K, other *V) {
	var s Seen
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen = Seen{c.seen.Compared + 1, c.seen.Hits + s.Hits, c.seen.Old + s.Old, c.seen.OtherOld + s.OtherOld, c.seen.Failed + s.Failed}
	}()
	ctx = context.WithValue(ctx, comparing{}, true)
	cached, had := c.look(ctx, k)
	now, err := c.source(ctx, k)
	if err != nil {
		s.Failed++
		return
	}
	if had {
		s.Hits++
	} else if _, err := c.Cache.Get(ctx, k); err != nil && !c.absent(err) {
		s.Failed++
	}
	oursOld, otherOld := had && !c.same(cached, now), other != nil && !c.same(other, now)
	if !oursOld && !otherOld {
		return
	}
	timer := time.NewTimer(c.pause())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		s.Failed++
		return
	}
	again, err := c.source(ctx, k)
	if err != nil || !c.same(again, now) {
		return // it changes: who was first is not known
	}
	if otherOld {
		s.OtherOld++
	}
	if after, still := c.look(ctx, k); oursOld && still && c.same(after, cached) {
		s.Old++
		if c.OnOld != nil && cached != nil && now != nil {
			c.OnOld(k, *cached, *now)
		}
	}
}

func (c *Comparer[K, V]) pause() time.Duration {
	if c.Pause <= 0 {
		return time.Second
	}
	return c.Pause
}

// look is what the cache has: nil, and true, for remembered absence.
func (c *Comparer[K, V]) look(ctx context.Context, k K) (v *V, had bool) {
	got, how, err := c.Cache.Peek(ctx, k)
	switch {
	case how == cacheguard.Negative:
		return nil, true
	case err != nil:
		return nil, false
	}
	return &got, true
}

// absent reports whether the error says that there is no such thing.
func (c *Comparer[K, V]) absent(err error) bool {
	return errors.Is(err, cacheguard.ErrNotFound) || c.NotFound != nil && errors.Is(err, c.NotFound)
}

// source is what the source has; nil: no such thing.
func (c *Comparer[K, V]) source(ctx context.Context, k K) (*V, error) {
	v, err := c.Source(ctx, k)
	switch {
	case c.absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &v, nil
}

func (c *Comparer[K, V]) same(a, b *V) bool {
	if a == nil || b == nil {
		return a == b
	}
	return c.Equal(*a, *b)
}

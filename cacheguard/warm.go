package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// WarmConfig says how Warm goes about it.
type WarmConfig struct {
	// Batch is how many things are looked up together, and loaded with one call of LoadMany. At most 10,000. Default:
	// 100 with LoadMany, else a quarter of MaxLoads.
	Batch int

	// Pause is about how long Warm pauses between batches. Default: 10 ms. -1: not at all.
	Pause time.Duration

	// Progress is called after each batch, by Warm's goroutine. Default: none.
	Progress func(Warmed)
}

const (
	defaultWarmBatch = 100
	mostBatch        = 10_000
	defaultWarmPause = 10 * time.Millisecond
	warmShare        = 4 // of MaxLoads
)

var errWarmWithin = errors.New("cacheguard: warm: the context is a transaction's, and nothing that it reads is stored")

// Warmed counts what Warm has looked at.
type Warmed struct {
	Loaded  int // by this call, and stored if they may be; also as absent
	Present int // in the cache already, or loaded by others meanwhile
	Failed  int
}

// Warm loads the things that the cache does not have, for an instance that is to serve soon: see docs/rollout.md. Its
// loads take only slots that nobody waits for, and EventGet does not report them.
//
// Warm ends when ids do, and when ctx ends: then the error is its cause. If a load fails, it goes on, and the error is
// a *KeyError, of the first one. What cannot be cached is not loaded, and counts as failed.
func (c *Cache[K, V]) Warm(ctx context.Context, ids iter.Seq[K], cfg WarmConfig) (Warmed, error) {
	if c == nil {
		return Warmed{}, errNilCache
	}
	if err := cfg.check(); err != nil {
		return Warmed{}, fmt.Errorf("cacheguard: %w", err)
	}
	if scopeOf(ctx, c.guard).isTransactions() {
		return Warmed{}, errWarmWithin
	}
	cfg = cfg.withDefaults(c.cfg.LoadMany != nil, c.guard.cfg.MaxLoads)
	c.guard.counts.warming.Add(1)
	defer c.guard.counts.warming.Add(-1)
	w := &warming{}
	batch := make([]K, 0, cfg.Batch)
	for k := range ids {
		if batch = append(batch, k); len(batch) < cfg.Batch {
			continue
		}
		if err := c.warm(ctx, batch, w, &cfg); err != nil {
			return w.Warmed, err
		}
		batch = batch[:0]
		if err := rest(ctx, cfg.Pause); err != nil {
			return w.Warmed, err
		}
	}
	if err := c.warm(ctx, batch, w, &cfg); err != nil {
		return w.Warmed, err
	}
	return w.Warmed, w.first
}

// warming is a Warm under way.
type warming struct {
	Warmed

	first error // a *KeyError
}

// add counts the answer for a key.
func (w *warming) add(how Outcome, err error) {
	switch {
	case err != nil && !(absentAlone(err) && how != ""):
		w.Failed++
	case how == Loaded:
		w.Loaded++
	default:
		w.Present++
	}
}

// warm looks after a batch. It fails only if ctx ends or the Guard is closed.
func (c *Cache[K, V]) warm(ctx context.Context, batch []K, w *warming, cfg *WarmConfig) error {
	keys, spec := c.many(batch)
	spec.spare = true
	m := &many[V]{query: query[V]{guard: c.guard, spec: spec}, counts: w.add, again: make(map[string]bool)}
	if w.Failed += len(batch) - len(keys.named); len(batch) > 0 {
		m.run(ctx, keys.named)
	}
	switch err := errors.Join(m.errs...); {
	case ctx.Err() != nil:
		return fmt.Errorf("cacheguard: warm %q: %w", c.policy.kind.name, context.Cause(ctx))
	case errors.Is(err, ErrClosed):
		return ErrClosed
	case err != nil && w.first == nil:
		w.first = m.errs[0]
	}
	if cfg.Progress != nil && len(batch) > 0 {
		cfg.Progress(w.Warmed)
	}
	return nil
}

func (w *WarmConfig) check() error {
	var p config.Problems
	p.Of = "WarmConfig"
	if w.Batch < 0 || w.Batch > mostBatch {
		p.Add("Batch", "%d is not between 0 (the default) and %d", w.Batch, mostBatch)
	}
	p.Duration("Pause", w.Pause)
	return p.Err()
}

func (w WarmConfig) withDefaults(many bool, maxLoads int) WarmConfig {
	if many {
		config.SetDefault(&w.Batch, defaultWarmBatch)
	}
	config.SetDefault(&w.Batch, max(maxLoads/warmShare, 1))
	config.SetDefault(&w.Pause, defaultWarmPause)
	return w
}

// rest waits for about so long.
func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 || lifecycle.Sleep(ctx, d/2+rand.N(d)) {
		return nil
	}
	return fmt.Errorf("cacheguard: warm: %w", context.Cause(ctx))
}

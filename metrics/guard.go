package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/cache/pages"
)

// Guard returns the Hooks of a Guard, whose metrics have the label cache=name. Calls through a Cache of the Guard have the
// Cache's name instead. Metrics about the whole Guard (its breakers, and what Watch reads) keep the Guard's name. Guards and
// Caches with the same name are counted together. The reads of a middleware.Cache are not among the requests: see HTTP.
func (m *Metrics) Guard(name string) cacheguard.Hooks {
	c := &counted{of: m, others: m.newInstruments(name)}
	breakers := m.breakers.WithLabelValues(name)
	return cacheguard.Hooks{
		OnCache: c.add,
		OnGet: func(ctx context.Context, key string, outcome cacheguard.Outcome, took time.Duration, err error) {
			if !pages.IsRead(ctx, key) { // HTTP counts those
				c.by(key).got(ctx, outcome, took, err)
			}
		},
		OnJoin: func(key string) { c.by(key).joins.Inc() },
		OnLoad: func(key string, took time.Duration, err error) {
			c.by(key).loads[loadResult(err)].Observe(took.Seconds())
		},
		OnStale:      func(key string, past time.Duration) { c.by(key).staleAge.Observe(past.Seconds()) },
		OnRejected:   func(key string) { c.by(key).overtaken.Inc() },
		OnUnstorable: func(key string, _ error) { c.by(key).unstorable.Inc() },
		OnDamaged:    func(key string, _ error) { c.by(key).damaged.Inc() },
		OnLeaseLost:  func(key string) { c.by(key).lost.Inc() },
		OnTakeover:   func(key string) { c.by(key).takeovers.Inc() },
		OnRedisError: func(err *cacheguard.RedisError) {
			if op := c.by(err.Key).ops[err.Op]; op != nil {
				op.Inc()
			}
		},
		OnBreaker: func(open bool) {
			if open {
				breakers.Inc()
			} else {
				breakers.Dec()
			}
		},
	}
}

func loadResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, cacheguard.ErrNotFound):
		return "absent"
	case errors.Is(err, context.Canceled):
		return "abandoned"
	}
	return "error"
}

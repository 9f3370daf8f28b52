package metrics

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
)

// Guard returns the Hooks of a Guard, whose metrics have the label cache=name. What is done through a Cache of the Guard has the
// Cache's name instead, but for what is about the whole Guard: its breakers, and what Watch reads. Guards and Caches with the
// same name are counted together.
func (m *Metrics) Guard(name string) cacheguard.Hooks {
	c := &counted{of: m, others: m.newInstruments(name)}
	breakers := m.breakers.WithLabelValues(name)
	return cacheguard.Hooks{
		OnCache: c.add,
		OnGet: func(ctx context.Context, key string, outcome cacheguard.Outcome, took time.Duration, err error) {
			c.by(key).got(ctx, outcome, took, err)
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

// watchable is a Guard.
type watchable interface {
	Stats() cacheguard.Stats
	Verify() cacheguard.Verified
}

// Watch reads a Guard's Stats and Verify whenever metrics are collected. The name is that given to Guard; a Guard watched
// under a name takes the place of the one before.
func (m *Metrics) Watch(name string, guard *cacheguard.Guard) {
	m.watched.mu.Lock()
	defer m.watched.mu.Unlock()
	m.watched.guards[name] = guard
}

var (
	inFlight = prometheus.NewDesc(namespace+"_loads_in_flight", "Loaders that run.", []string{"cache"}, nil)
	owed     = prometheus.NewDesc(namespace+"_owed_invalidations", "Keys whose invalidation is still to be sent.", []string{"cache"}, nil)
	verified = prometheus.NewDesc(namespace+"_verified_total", "Hits that were compared with the source.", []string{"cache", "result"}, nil)
)

// Describe is part of prometheus.Collector.
func (w *watched) Describe(c chan<- *prometheus.Desc) {
	c <- inFlight
	c <- owed
	c <- verified
}

// Collect is part of prometheus.Collector.
func (w *watched) Collect(c chan<- prometheus.Metric) {
	w.mu.Lock()
	guards := maps.Clone(w.guards)
	w.mu.Unlock()
	for name, guard := range guards {
		s, v := guard.Stats(), guard.Verify()
		c <- prometheus.MustNewConstMetric(inFlight, prometheus.GaugeValue, float64(s.Loading), name)
		c <- prometheus.MustNewConstMetric(owed, prometheus.GaugeValue, float64(s.Owed), name)
		for result, n := range map[string]uint64{
			"matched": v.Matched, "stale": v.Stale, "superseded": v.Superseded, "failed": v.Failed,
		} {
			c <- prometheus.MustNewConstMetric(verified, prometheus.CounterValue, float64(n), name, result)
		}
	}
}

package metrics

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
)

// ops are the operations of a RedisError.
var ops = []string{"get", "acquire", "fill", "fail", "invalidate", "update"}

var outcomes = []cacheguard.Outcome{
	cacheguard.Hit, cacheguard.Local, cacheguard.Stale, cacheguard.Negative, cacheguard.Loaded, cacheguard.Shared,
	cacheguard.Bypassed,
}

// Guard returns the Hooks of a Guard, whose metrics have the label cache=name. Guards with the same name are counted
// together.
func (m *Metrics) Guard(name string) cacheguard.Hooks {
	byOutcome := make(map[cacheguard.Outcome]prometheus.Counter)
	for _, o := range outcomes {
		byOutcome[o] = m.requests.WithLabelValues(name, string(o))
	}
	failed, missed := m.requests.WithLabelValues(name, "error"), m.requests.WithLabelValues(name, "missed")
	left := m.requests.WithLabelValues(name, "left")
	loads := map[string]prometheus.Observer{}
	for _, result := range []string{"ok", "absent", "abandoned", "error"} {
		loads[result] = m.loadTime.WithLabelValues(name, result)
	}
	byOp := make(map[string]prometheus.Counter)
	for _, op := range ops {
		byOp[op] = m.redisErrors.WithLabelValues(name, op)
	}
	overtaken, unstorable := m.rejected.WithLabelValues(name, "overtaken"), m.rejected.WithLabelValues(name, "unstorable")
	requestTime, staleAge := m.requestTime.WithLabelValues(name), m.staleAge.WithLabelValues(name)
	joins, damaged := m.joins.WithLabelValues(name), m.damaged.WithLabelValues(name)
	lost, takeovers, breakers := m.lost.WithLabelValues(name), m.takeovers.WithLabelValues(name), m.breakers.WithLabelValues(name)
	return cacheguard.Hooks{
		OnGet: func(ctx context.Context, _ string, outcome cacheguard.Outcome, took time.Duration, err error) {
			requestTime.Observe(took.Seconds())
			switch c := byOutcome[outcome]; {
			case c != nil && (err == nil || errors.Is(err, cacheguard.ErrNotFound)):
				c.Inc()
			case errors.Is(err, cacheguard.ErrNotCached):
				missed.Inc()
			case errors.Is(ctx.Err(), context.Canceled):
				left.Inc()
			default:
				failed.Inc()
			}
		},
		OnJoin:       func(string) { joins.Inc() },
		OnLoad:       func(_ string, took time.Duration, err error) { loads[loadResult(err)].Observe(took.Seconds()) },
		OnStale:      func(_ string, past time.Duration) { staleAge.Observe(past.Seconds()) },
		OnRejected:   func(string) { overtaken.Inc() },
		OnUnstorable: func(string, error) { unstorable.Inc() },
		OnDamaged:    func(string, error) { damaged.Inc() },
		OnLeaseLost:  func(string) { lost.Inc() },
		OnTakeover:   func(string) { takeovers.Inc() },
		OnRedisError: func(err *cacheguard.RedisError) {
			if c := byOp[err.Op]; c != nil {
				c.Inc()
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

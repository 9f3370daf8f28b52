package otel

import (
	"context"
	"errors"
	"maps"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/cacheguard/go/cacheguard"
)

// maker makes instruments, and keeps the errors.
type maker struct {
	meter metric.Meter
	err   error
}

func (m *maker) duration(of, about string, buckets metric.HistogramOption) metric.Float64Histogram {
	return m.histogram(of+".duration", about, buckets)
}

func (m *maker) histogram(name, about string, buckets metric.HistogramOption) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram("cacheguard."+name, metric.WithUnit("s"), metric.WithDescription(about), buckets)
	m.err = errors.Join(m.err, err)
	return h
}

func (m *maker) counter(name, unit, about string) metric.Int64Counter {
	c, err := m.meter.Int64Counter("cacheguard."+name, metric.WithUnit(unit), metric.WithDescription(about))
	m.err = errors.Join(m.err, err)
	return c
}

// watched are the guards that are asked when metrics are collected.
type watched struct {
	mu     sync.Mutex
	guards map[string]*cacheguard.Guard
}

// Watch reads a Guard's Stats whenever metrics are collected. The name is the one given to Guard; a Guard watched under a
// name replaces the one before.
func (t *Telemetry) Watch(name string, guard *cacheguard.Guard) {
	t.watched.mu.Lock()
	defer t.watched.mu.Unlock()
	if t.watched.guards == nil {
		t.watched.guards = make(map[string]*cacheguard.Guard)
	}
	t.watched.guards[name] = guard
}

func (t *Telemetry) observe(_ context.Context, o metric.Observer) error {
	t.watched.mu.Lock()
	guards := maps.Clone(t.watched.guards)
	t.watched.mu.Unlock()
	for name, guard := range guards {
		stats, cache := guard.Stats(), metric.WithAttributes(cacheKey.String(name))
		o.ObserveInt64(t.loading, int64(stats.Loading), cache)
		o.ObserveInt64(t.pending, int64(stats.Pending), cache)
		o.ObserveInt64(t.intents, int64(stats.Intents), cache)
		o.ObserveInt64(t.failedRefreshes, int64(stats.FailedRefreshes), cache)
		for outcome, n := range map[string]uint64{
			"hit": stats.Shadowed.Hits, "miss": stats.Shadowed.Missed, "failed": stats.Shadowed.Failed, "differed": stats.Shadowed.Differed,
			"old": stats.Shadowed.Old,
		} {
			o.ObserveInt64(t.shadows, int64(n), metric.WithAttributes(cacheKey.String(name), outcomeKey.String(outcome)))
		}
	}
	return nil
}

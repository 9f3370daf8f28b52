package otel

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"

	otelapi "go.opentelemetry.io/otel"
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

// watched are the guards that are asked when metrics are collected, and the instruments for the numbers that they have.
type watched struct {
	mu           sync.Mutex
	closed       bool
	guards       map[string]*cacheguard.Guard
	of           map[string]metric.Float64Observable
	registration metric.Registration // nil: nothing is watched
}

// Watch reads a Guard's Stats whenever metrics are collected. The name is the one given to Guard; a Guard watched under a
// name replaces the one before. The meter's errors go to the ErrorHandler of OpenTelemetry.
func (t *Telemetry) Watch(name string, guard *cacheguard.Guard) {
	w := &t.watched
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if w.guards == nil {
		w.guards, w.of = make(map[string]*cacheguard.Guard), make(map[string]metric.Float64Observable)
	}
	w.guards[text(name)] = guard
	if err := w.registerLocked(t.meter, guard); err != nil {
		otelapi.Handle(err)
	}
}

// registerLocked makes the instruments that the Guard's numbers lack, and has them collected.
func (w *watched) registerLocked(meter metric.Meter, guard *cacheguard.Guard) (err error) {
	before := len(w.of)
	for n := range guard.Stats().All() {
		name, total := strings.CutSuffix(n.Name, "_total")
		var made metric.Float64Observable
		var failed error
		switch {
		case w.of[n.Name] != nil:
			continue
		case total:
			made, failed = meter.Float64ObservableCounter("cacheguard."+name, metric.WithDescription(n.Help))
		default:
			made, failed = meter.Float64ObservableGauge("cacheguard."+name, metric.WithDescription(n.Help))
		}
		if err = errors.Join(err, failed); failed == nil {
			w.of[n.Name] = made
		}
	}
	if len(w.of) == before {
		return err
	}
	if w.registration != nil {
		err = errors.Join(err, w.registration.Unregister())
	}
	all := make([]metric.Observable, 0, len(w.of))
	for _, made := range w.of {
		all = append(all, made)
	}
	var failed error
	w.registration, failed = meter.RegisterCallback(w.observe, all...)
	return errors.Join(err, failed)
}

func (w *watched) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.registration == nil {
		return nil
	}
	return w.registration.Unregister()
}

func (w *watched) observe(_ context.Context, o metric.Observer) error {
	w.mu.Lock()
	guards, of := maps.Clone(w.guards), maps.Clone(w.of)
	w.mu.Unlock()
	for name, guard := range guards {
		cache := metric.WithAttributes(cacheKey.String(name))
		for n := range guard.Stats().All() {
			if made := of[n.Name]; made != nil { // else it was added since
				o.ObserveFloat64(made, n.Value, cache)
			}
		}
	}
	return nil
}

package metrics

import (
	"maps"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
)

// watchable is a Guard.
type watchable interface {
	Stats() cacheguard.Stats
}

// watched are the guards that are asked when metrics are collected.
type watched struct {
	mu     sync.Mutex
	guards map[string]watchable
}

// Watch reads a Guard's Stats whenever metrics are collected. The name is the one given to Guard; a Guard
// watched under a name replaces the one before.
func (m *Metrics) Watch(name string, guard *cacheguard.Guard) {
	m.watched.mu.Lock()
	defer m.watched.mu.Unlock()
	m.watched.guards[label(name)] = guard
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Describe is part of prometheus.Collector. What there is the guards say that are watched.
func (w *watched) Describe(chan<- *prometheus.Desc) {}

// Collect is part of prometheus.Collector.
func (w *watched) Collect(c chan<- prometheus.Metric) {
	w.mu.Lock()
	guards := maps.Clone(w.guards)
	w.mu.Unlock()
	for name, guard := range guards {
		for n := range guard.Stats().All() {
			kind := prometheus.GaugeValue
			if strings.HasSuffix(n.Name, "_total") {
				kind = prometheus.CounterValue
			}
			c <- prometheus.MustNewConstMetric(describe(n.Name, n.Help, "cache"), kind, n.Value, name)
		}
	}
}

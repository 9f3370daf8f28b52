package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/metrics"
)

// seriesOf is how many series package metrics exports for a Guard with so many Caches.
func seriesOf(caches int) (n int, err error) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{})
	if err != nil {
		return 0, err
	}
	hooks := m.Guard("size")
	g, err := cacheguard.New(nil, cacheguard.Config{Disabled: true, Hooks: hooks})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	for i := range caches {
		hooks.OnCache(fmt.Sprint("cache", i))
	}
	m.Watch("size", g)
	families, err := registry.Gather()
	for _, family := range families {
		for _, one := range family.GetMetric() {
			n++
			if h := one.GetHistogram(); h != nil {
				n += len(h.GetBucket()) + 2 // with the last bucket, the sum and the count
			}
		}
	}
	return n, err
}

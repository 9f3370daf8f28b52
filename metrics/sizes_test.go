package metrics_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/metrics"
)

// samples counts what a scrape has, as Prometheus does: each bucket of a histogram is a series.
func samples(t *testing.T, registry *prometheus.Registry) (n int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			n++
			if h := m.GetHistogram(); h != nil {
				n += len(h.GetBucket()) + 2 // +Inf, sum and count, of which one was counted
			}
		}
	}
	return n
}

func TestTheDocumentationSaysHowManySeriesThereAre(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rdb := newClient()
	defer rdb.Close()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "sizes", Hooks: m.Guard("shop")})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	m.Watch("shop", guard)
	ofGuard := samples(t, registry)
	if _, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[string, string]{
		Name: "product", Load: func(context.Context, string) (string, error) { return "", nil },
	}); err != nil {
		t.Fatal(err)
	}
	ofCache := samples(t, registry) - ofGuard
	page, err := os.ReadFile("../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("%d, and %d for each `Cache`", ofGuard, ofCache)
	if !strings.Contains(string(page), row) {
		t.Errorf("docs/production.md should say %q", row)
	}
}

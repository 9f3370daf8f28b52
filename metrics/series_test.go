package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// seriesOf is how many series Prometheus keeps of a service with so many kinds, and one Guard, cache of pages with a route, lock and feed, and how
// many of them are of the Guard.
func seriesOf(t *testing.T, cfg Config, kinds int) (all, ofGuard int) {
	t.Helper()
	registry := prometheus.NewRegistry()
	cfg.Routes = []string{"/products/{id}"}
	m, err := New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	counts := m.Guard("shop")
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: "series", Observers: []cacheguard.Observer{counts}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	for i := range kinds {
		counts.Observe(t.Context(), cacheguard.Event{What: cacheguard.EventCache, Kind: fmt.Sprint("kind", i)})
	}
	m.Watch("shop", guard)
	ofGuard = scraped(registry)
	m.HTTP("pages")
	m.Lock("jobs")
	m.Feed("log", func() cdc.Stats { return cdc.Stats{} })
	return scraped(registry), ofGuard
}

// scraped is how many series a registry has.
func scraped(registry *prometheus.Registry) (series int) {
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	return series
}

func TestAKindHasFewSeriesUnlessDetailsAreAskedFor(t *testing.T) {
	t.Parallel()
	var few, all [2]int
	var fewOfGuard, allOfGuard int
	for i, kinds := range []int{3, 20} {
		few[i], fewOfGuard = seriesOf(t, Config{}, kinds)
		all[i], allOfGuard = seriesOf(t, Config{Detailed: true}, kinds)
	}
	t.Logf("with 3 and 20 kinds: %v; with details: %v", few, all)
	for i := range few {
		if 29*few[i] > 10*all[i] { // "about three times as many"
			t.Errorf("%d series, more than about a third of %d", few[i], all[i])
		}
	}
	manual, err := os.ReadFile("../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	each, allOfEach := (few[1]-few[0])/17, (all[1]-all[0])/17
	for _, row := range []string{
		fmt.Sprintf("| each kind, and the Guard's own keys | %d | %d |", each, allOfEach),
		fmt.Sprintf("| a Guard, with `Watch` | %d | %d |", fewOfGuard-21*each, allOfGuard-21*allOfEach),
		fmt.Sprintf("| such a service with 3 kinds; with 20 | %d; %d | %d; %d |", few[0], few[1], all[0], all[1]),
	} {
		if !strings.Contains(string(manual), row) {
			t.Errorf("docs/production.md does not say %q", row)
		}
	}
}

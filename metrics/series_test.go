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

// seriesOf is how many series Prometheus keeps of a service with so many kinds, and one Guard, cache of pages with a route, lock and feed.
func seriesOf(t *testing.T, cfg Config, kinds int) int {
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
	m.HTTP("pages")
	m.Lock("jobs")
	m.Feed("log", func() cdc.Stats { return cdc.Stats{} })
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	series := 0
	for line := range strings.Lines(page.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	return series
}

func TestAKindHasFewSeriesUnlessDetailsAreAskedFor(t *testing.T) {
	t.Parallel()
	few := [2]int{seriesOf(t, Config{}, 3), seriesOf(t, Config{}, 20)}
	all := [2]int{seriesOf(t, Config{Detailed: true}, 3), seriesOf(t, Config{Detailed: true}, 20)}
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
		fmt.Sprintf("| such a service with 3 kinds; with 20 | %d; %d | %d; %d |", few[0], few[1], all[0], all[1]),
	} {
		if !strings.Contains(string(manual), row) {
			t.Errorf("docs/production.md does not say %q", row)
		}
	}
}

package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/metrics"
	"github.com/cacheguard/go/middleware"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/semaphore"
)

// answers are what Prometheus says to a query.
type answers struct {
	Status, ErrorType, Error string
	Data                     struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
}

var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}

func query(t *testing.T, server, expr string) (a answers, ok bool) {
	t.Helper()
	answer, err := client.Get(server + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return a, false // it is not there yet
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&a); err != nil {
		return a, false // nor is it whole yet
	}
	if a.ErrorType == "bad_data" {
		t.Fatalf("%s: %s", expr, a.Error)
	}
	return a, a.Status == "success"
}

// scraped starts a real Prometheus that scrapes the targets, and returns its address.
func scraped(t *testing.T, targets ...string) string {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("prometheus is missing: install it, or run make test-all, which does")
	}
	addr := fmt.Sprint("127.0.0.1:", redistest.FreePort(t))
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	rules, err := filepath.Abs("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("rule_files: [%q]\nscrape_configs:\n- job_name: shop\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n"+
		"  static_configs:\n  - targets: [%s]\n", rules, strings.ReplaceAll(strings.Join(targets, ", "), "http://", ""))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	redistest.Serve(t, exec.Command(path, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr))
	return "http://" + addr
}

// work reports what a service does: of its Gets, three in four are hits.
func work(guard cacheguard.Observer, locks mutex.Hooks, pages func(*http.Request, middleware.Response)) {
	ctx := context.Background()
	for range 3 {
		guard.Observe(ctx, cacheguard.Event{What: cacheguard.EventGet, Key: "k", Outcome: cacheguard.Hit, Took: time.Millisecond})
	}
	guard.Observe(ctx, cacheguard.Event{What: cacheguard.EventGet, Key: "k", Outcome: cacheguard.Loaded, Took: time.Second})
	guard.Observe(ctx, cacheguard.Event{What: cacheguard.EventLoad, Key: "k", Took: time.Second})
	guard.Observe(ctx, cacheguard.Event{What: cacheguard.EventStale, Key: "k", Took: time.Second})
	locks.OnLock("import", time.Second, nil)
	locks.OnUnlock("import", time.Second, nil)
	pages(httptest.NewRequest(http.MethodGet, "/", nil), middleware.Response{Result: middleware.Loaded, Route: "/", Took: time.Second})
	pages(httptest.NewRequest(http.MethodGet, "/", nil), middleware.Response{Result: middleware.Passed, Route: "/", NotStored: "set-cookie"})
}

func TestARealPrometheusHasAnAnswerToEachQueryOfTheDashboard(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{Routes: []string{"/"}})
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr()})
	defer rdb.Close()
	counts := m.Guard("shop")
	limiter, err := semaphore.NewLimiter(rdb, "loads", semaphore.Config{Permits: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	guard, err := cacheguard.New(rdb, cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Limiter: limiter})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	m.Watch("shop", guard)
	m.Feed("shop", func() cdc.Stats { return cdc.Stats{} })
	pages, locks := m.HTTP("shop"), m.Lock("jobs")
	exporter := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(exporter.Close)
	server := scraped(t, exporter.URL)
	redistest.Await(t, "Prometheus has scraped", func() bool {
		a, ok := query(t, server, `cacheguard_requests_total{result="hit"}`)
		return ok && len(a.Data.Result) > 0
	})
	load := func(context.Context) (string, error) { return "v", nil }
	values := strings.NewReplacer("$__rate_interval", "1m", "$cache", ".*", "$job", ".*", "$instance", ".*")
	for _, expr := range expressions(t) {
		expr := values.Replace(expr)
		redistest.Await(t, "an answer to "+expr, func() bool {
			work(counts, locks, pages)
			if _, err := cacheguard.Get(t.Context(), guard, "k", load); err != nil {
				t.Fatal(err)
			}
			a, ok := query(t, server, expr)
			return ok && len(a.Data.Result) > 0 && a.Data.Result[0].Value[1] != "NaN"
		})
	}
	ratio := values.Replace(expressions(t)[0])
	redistest.Await(t, "a hit ratio of three quarters", func() bool {
		a, ok := query(t, server, ratio)
		return ok && len(a.Data.Result) == 1 && strings.HasPrefix(fmt.Sprint(a.Data.Result[0].Value[1]), "0.75")
	})
}

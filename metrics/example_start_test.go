package metrics_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/metrics"
	"github.com/cacheguard/go/middleware"
	"github.com/cacheguard/go/mutex"
)

func newClient() *redis.Client { return redis.NewClient(&redis.Options{Addr: metrics.SharedAddr()}) }

// series returns how many series a metric has.
func series(registry *prometheus.Registry, name string) int {
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return len(f.GetMetric())
		}
	}
	return 0
}

func ExampleNew() {
	registry := prometheus.NewRegistry()
	if _, err := metrics.New(registry, metrics.Config{Routes: []string{"/products/{id}"}}); err != nil {
		log.Fatal(err) // a second one on the same registry is refused
	}
	http.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	// Output:
}

func ExampleMetrics_HTTP() {
	rdb, registry := newClient(), prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{})
	if err != nil {
		log.Fatal(err)
	}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "measured-pages", Observers: []cacheguard.Observer{m.Guard("pages")}})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{OnResponse: m.HTTP("pages")})
	if err != nil {
		log.Fatal(err)
	}

	page := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
	}))
	page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(series(registry, "cacheguard_http_request_duration_seconds"))
	// Output: 3
}

func ExampleMetrics_Lock() {
	ctx, rdb, registry := context.Background(), newClient(), prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := mutex.New(rdb, mutex.Config{Prefix: "measured-lock", Hooks: m.Lock("invoices")})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "invoice:7", func(context.Context, *mutex.Lease) error { return nil })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(series(registry, "cacheguard_lock_hold_seconds"))
	// Output: 1
}

func ExampleMetrics_Watch() {
	rdb, registry := newClient(), prometheus.NewRegistry()
	defer rdb.Close()
	m, err := metrics.New(registry, metrics.Config{})
	if err != nil {
		log.Fatal(err)
	}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "watched", Observers: []cacheguard.Observer{m.Guard("shop")}})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	m.Watch("shop", guard) // loads in flight, pending invalidations, and more

	fmt.Println(series(registry, "cacheguard_loads_in_flight"), series(registry, "cacheguard_pending_invalidations"))
	// Output: 1 1
}

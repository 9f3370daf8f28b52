package metrics

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/middleware"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

// everything is one of each thing that has metrics.
type everything struct {
	t     *testing.T
	reg   *prometheus.Registry
	m     *Metrics
	guard *cacheguard.Guard
	cfg   string // prefix
}

func newEverything(t *testing.T) *everything {
	t.Helper()
	e := &everything{t: t, reg: prometheus.NewRegistry(), cfg: "test-" + rand.Text()}
	var err error
	if e.m, err = New(e.reg, Config{Routes: []string{"/products/{id}"}}); err != nil {
		t.Fatal(err)
	}
	e.guard, err = cacheguard.New(shared.Client(t), cacheguard.Config{
		RedisTimeout: redistest.Patience, HedgeAfter: -1,
		Prefix: e.cfg, Observers: []cacheguard.Observer{e.m.Guard("shop")}, MaxValueBytes: 100, StaleFor: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.guard.Close() }) // always nil
	e.m.Watch("shop", e.guard)
	e.m.Feed("log", func() cdc.Stats {
		return cdc.Stats{Reading: true, Err: errors.New("why"), Behind: 2 * time.Second, BehindBytes: 3, Retained: 4, Rows: 5, Invalidations: 6, Whole: 7, Reconnects: 8}
	})
	return e
}

// values is what is exported, by name{label=value,...}; of histograms, the count.
func (e *everything) values() map[string]float64 {
	e.t.Helper()
	families, err := e.reg.Gather()
	if err != nil {
		e.t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			values[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = value(f.GetType(), m)
		}
	}
	return values
}

func value(kind dto.MetricType, m *dto.Metric) float64 {
	switch kind {
	case dto.MetricType_COUNTER:
		return m.GetCounter().GetValue()
	case dto.MetricType_GAUGE:
		return m.GetGauge().GetValue()
	}
	return float64(m.GetHistogram().GetSampleCount())
}

// await waits for what is counted after the caller has its answer.
func (e *everything) await(name string, want float64) {
	e.t.Helper()
	redistest.Await(e.t, name, func() bool { return e.values()[name] == want })
}

// stored waits until what was loaded is stored: callers have it earlier.
func (e *everything) stored() {
	e.t.Helper()
	redistest.AwaitNoLease(e.t, shared.Client(e.t), e.cfg)
}

func (e *everything) want(name string, want float64) {
	e.t.Helper()
	got, found := e.values()[name]
	if !found || got != want {
		e.t.Errorf("%s is %v (exported: %v), want %v", name, got, found, want)
	}
}

// exportedOfGets is what is exported of the Gets of TestGuardsAreCounted.
var exportedOfGets = map[string]float64{
	"cacheguard_requests_total{cache=shop,result=loaded}":           4, // a, absent, large, overtaken
	"cacheguard_requests_total{cache=shop,result=hit}":              1,
	"cacheguard_requests_total{cache=shop,result=error}":            2, // failing, and absent without a loader
	"cacheguard_requests_total{cache=shop,result=bypassed}":         0,
	"cacheguard_request_duration_seconds{cache=shop,result=loaded}": 4,
	"cacheguard_request_duration_seconds{cache=shop,result=hit}":    1,
	"cacheguard_loads_avoided_total{cache=shop,reason=shared}":      0,
	"cacheguard_loads_avoided_total{cache=shop,reason=stale}":       0,
	"cacheguard_loads_limit{cache=shop}":                            64,
	"cacheguard_loads_queued{cache=shop}":                           0,
	"cacheguard_requests_waiting{cache=shop}":                       0,
	"cacheguard_bypassed{cache=shop}":                               0,
	"cacheguard_warming{cache=shop}":                                0,
	"cacheguard_failed_refreshes_total{cache=shop}":                 0,
	"cacheguard_unknown_names{cache=shop}":                          0,
	"cacheguard_subscription_up{cache=shop}":                        1,
	"cacheguard_pending_invalidations_age_seconds{cache=shop}":      0,
	"cacheguard_intents{cache=shop}":                                0,
	"cacheguard_intent_oldest_seconds{cache=shop}":                  0,
	"cacheguard_overdue_total{cache=shop}":                          0,
	"cacheguard_load_duration_seconds{cache=shop,result=ok}":        3,
	"cacheguard_load_duration_seconds{cache=shop,result=absent}":    1,
	"cacheguard_load_duration_seconds{cache=shop,result=error}":     1,
	"cacheguard_rejected_fills_total{cache=shop,reason=overtaken}":  1,
	"cacheguard_rejected_fills_total{cache=shop,reason=unstorable}": 1,
	"cacheguard_loads_in_flight{cache=shop}":                        0,
	"cacheguard_pending_invalidations{cache=shop}":                  0,
	"cacheguard_refused_messages{cache=shop}":                       0,
	"cacheguard_refused_messages_age_seconds{cache=shop}":           0,
	"cacheguard_stale_age_seconds{cache=shop}":                      0,
	"cacheguard_breakers_open{cache=shop}":                          0,
	"cacheguard_takeovers_total{cache=shop}":                        0,
	"cacheguard_redis_errors_total{cache=shop,op=invalidate}":       0,
}

func TestGuardsAreCounted(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	get := func(key string, load func(context.Context) (string, error)) {
		_, _ = cacheguard.Get(t.Context(), e.guard, key, load) // what it returns is counted
		e.stored()
	}
	value := func(v string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return v, nil }
	}
	get("a", value("v"))
	get("a", value("v"))
	get("absent", func(context.Context) (string, error) { return "", cacheguard.ErrNotFound })
	get("absent", nil)
	get("failing", func(context.Context) (string, error) { return "", errors.New("no") })
	get("large", value(strings.Repeat("x", 101)))
	get("overtaken", func(ctx context.Context) (string, error) { return "v", e.guard.Invalidate(ctx, "overtaken") })
	e.await("cacheguard_rejected_fills_total{cache=shop,reason=overtaken}", 1)
	e.await("cacheguard_subscription_up{cache=shop}", 1)
	if v := e.values(); v["cacheguard_read_bytes_total{cache=shop}"] <= 0 || v["cacheguard_written_bytes_total{cache=shop}"] <= 0 {
		t.Error("no bytes were read or written")
	}
	for name, want := range exportedOfGets {
		e.want(name, want)
	}
}

// Neither is a failure that anybody has to get up for.
func TestWhatIsNotCachedAndWhoLeavesAreNoErrors(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	_, _, err := cacheguard.Fetch(t.Context(), e.guard, "k", cacheguard.Source[string]{})
	if !errors.Is(err, cacheguard.ErrNotCached) {
		t.Error(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	_, err = cacheguard.Get(ctx, e.guard, "k", func(ctx context.Context) (string, error) {
		leave()
		<-ctx.Done()
		return "", ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	e.want("cacheguard_requests_total{cache=shop,result=missed}", 1)
	e.want("cacheguard_requests_total{cache=shop,result=left}", 1)
	e.want("cacheguard_requests_total{cache=shop,result=error}", 0)
	redistest.Await(t, "the load has ended", func() bool {
		return e.values()["cacheguard_load_duration_seconds{cache=shop,result=abandoned}"] == 1
	})
	e.want("cacheguard_load_duration_seconds{cache=shop,result=error}", 0)
}

func TestLoadsInFlightAreThoseThatRun(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	_, err := cacheguard.Get(t.Context(), e.guard, "k", func(context.Context) (string, error) {
		e.want("cacheguard_loads_in_flight{cache=shop}", 1)
		return "", nil
	})
	if err != nil {
		t.Error(err)
	}
	e.want("cacheguard_loads_in_flight{cache=shop}", 0)
}

func TestLocksAreCounted(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	locks, err := mutex.New(shared.Client(t), mutex.Config{RedisTimeout: redistest.Patience, Prefix: e.cfg, Hooks: e.m.Lock("jobs")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() }) // always nil
	rw, err := rwlock.New(shared.Client(t), rwlock.Config{RedisTimeout: redistest.Patience, Prefix: e.cfg, Hooks: e.m.Lock("files")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rw.Close() }) // always nil
	lease, err := locks.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = locks.TryLock(t.Context(), "k") // refused
	_, _ = locks.Revoke(t.Context(), "k")
	<-lease.Context().Done()
	_ = lease.Unlock(t.Context()) // it was revoked
	if err := rw.RDo(t.Context(), "k", func(context.Context, *rwlock.Lease) error { return nil }); err != nil {
		t.Error(err)
	}
	permits, err := semaphore.New(shared.Client(t), semaphore.Config{RedisTimeout: redistest.Patience, Prefix: e.cfg, Permits: 1, Hooks: e.m.Lock("reports")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = permits.Close() }) // always nil
	err = permits.Do(t.Context(), "k", func(ctx context.Context, _ *semaphore.Lease) error {
		_, _ = permits.TryLock(ctx, "k") // refused
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	e.want("cacheguard_lock_wait_seconds{lock=reports,result=acquired}", 1)
	e.want("cacheguard_lock_wait_seconds{lock=reports,result=refused}", 1)
	e.want("cacheguard_lock_hold_seconds{lock=reports}", 1)
	e.want("cacheguard_lock_wait_seconds{lock=jobs,result=acquired}", 1)
	e.want("cacheguard_lock_wait_seconds{lock=jobs,result=refused}", 1)
	e.want("cacheguard_lock_wait_seconds{lock=jobs,result=error}", 0)
	e.want("cacheguard_lock_hold_seconds{lock=jobs}", 1)
	e.want("cacheguard_locks_lost_total{lock=jobs,reason=revoked}", 1)
	e.want("cacheguard_lock_wait_seconds{lock=files,result=acquired}", 1)
	e.want("cacheguard_lock_hold_seconds{lock=files}", 1)
}

func TestRequestsAreCountedByRoute(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	cache, err := middleware.New(e.guard, middleware.Config{OnResponse: e.m.HTTP("pages"), Limits: middleware.Limits{URL: 50}})
	if err != nil {
		t.Fatal(err)
	}
	page := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
	}))
	mux := http.NewServeMux()
	mux.Handle("/products/{id}", page)
	mux.Handle("/unknown/{id}", page)
	for _, path := range []string{"/products/1", "/products/1", "/products/2", "/unknown/1", "/products/" + strings.Repeat("3", 50)} {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	e.want("cacheguard_http_requests_total{cache=pages,result=loaded,route=/products/{id}}", 3)
	e.want("cacheguard_http_requests_total{cache=pages,result=loaded,route=other}", 1)
	e.want("cacheguard_http_requests_total{cache=pages,result=hit,route=other}", 0)
	e.want("cacheguard_http_requests_total{cache=pages,result=refused,route=/products/{id}}", 1)
	e.want("cacheguard_http_request_duration_seconds{cache=pages,result=loaded}", 5)
}

// A router that is mounted adds to the pattern, and its parts may be joined as chi does or not.
func TestRoutesOfMountedRoutersAreCounted(t *testing.T) {
	t.Parallel()
	e := &everything{t: t, reg: prometheus.NewRegistry()}
	m, err := New(e.reg, Config{Routes: []string{"/api/*/products/{id}", "/files/*"}})
	if err != nil {
		t.Fatal(err)
	}
	served := m.HTTP("pages")
	for _, route := range []string{"/api/products/{id}", "/files/*"} {
		served(nil, middleware.Response{Result: middleware.Hit, Route: route})
		e.want("cacheguard_http_requests_total{cache=pages,result=hit,route="+route+"}", 1)
	}
}

func TestWhyResponsesAreNotStoredIsCounted(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	cache, err := middleware.New(e.guard, middleware.Config{OnResponse: e.m.HTTP("pages")})
	if err != nil {
		t.Fatal(err)
	}
	page := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		switch r.URL.Path {
		case "/cookie":
			w.Header().Set("Set-Cookie", "a=b")
		case "/short":
			w.Header().Set("Content-Length", "10")
		}
		_, _ = w.Write([]byte("page"))
	}))
	for _, ask := range []string{"GET /cookie", "GET /cookie", "GET /short", "GET /", "POST /", "POST /cookie"} {
		method, path, _ := strings.Cut(ask, " ")
		page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
	}
	e.want("cacheguard_http_not_stored_total{cache=pages,reason=set-cookie}", 2)
	e.want("cacheguard_http_not_stored_total{cache=pages,reason=other}", 1)
	e.want("cacheguard_http_not_stored_total{cache=pages,reason=no-store}", 0)
	e.want("cacheguard_http_requests_total{cache=pages,result=passed,route=other}", 5)
	e.guard.Bypass(true) // an operator wants that
	page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	e.want("cacheguard_http_requests_total{cache=pages,result=passed,route=other}", 6)
	e.want("cacheguard_http_requests_total{cache=pages,result=bypassed,route=other}", 0)
	e.want("cacheguard_http_not_stored_total{cache=pages,reason=other}", 1)
}

// A page with variants takes two reads of the Guard, and none of them is a hit or a miss of the Guard's.
func TestRequestsOfPagesAreCountedOnceAndNotAsTheGuards(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: e.cfg, Observers: []cacheguard.Observer{e.m.Guard("roomy")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	cache, err := middleware.New(guard, middleware.Config{OnResponse: e.m.HTTP("pages")})
	if err != nil {
		t.Fatal(err)
	}
	page := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "Accept-Language")
		if _, err := cacheguard.Get(r.Context(), guard, "within", func(context.Context) (string, error) { return "v", nil }); err != nil {
			t.Error(err)
		}
	}))
	for _, language := range []string{"en", "de"} {
		for range 3 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Language", language)
			page.ServeHTTP(httptest.NewRecorder(), r)
			e.stored()
		}
	}
	e.want("cacheguard_http_requests_total{cache=pages,result=loaded,route=other}", 2)
	e.want("cacheguard_http_requests_total{cache=pages,result=hit,route=other}", 4)
	e.want("cacheguard_requests_total{cache=roomy,result=loaded}", 1) // of the handler's own key
	e.want("cacheguard_requests_total{cache=roomy,result=hit}", 1)
	e.want("cacheguard_request_duration_seconds{cache=roomy,result=hit}", 1)
}

func TestLoadsThatWaitForTheFleetAreSeen(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	rdb := shared.Client(t)
	limiter, err := semaphore.NewLimiter(rdb, "loads", semaphore.Config{Prefix: e.cfg, Permits: 1, RedisTimeout: redistest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() }) // always nil
	guard, err := cacheguard.New(rdb, cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: e.cfg, Limiter: limiter})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	e.m.Watch("few", guard)
	release, replies := make(chan struct{}), make(chan error, 3)
	for _, key := range []string{"a", "b", "c"} {
		go func() { // owner: the test; ends with the Get; joined by receiving
			_, err := cacheguard.Get(context.Background(), guard, key, func(context.Context) (string, error) {
				<-release
				return "v", nil
			})
			replies <- err
		}()
	}
	e.await("cacheguard_limiter_queued{cache=few}", 2)
	close(release)
	for range 3 {
		if err := <-replies; err != nil {
			t.Error(err)
		}
	}
	e.await("cacheguard_limiter_queued{cache=few}", 0)
}

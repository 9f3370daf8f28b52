package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cdc"
)

// Config says which labels there are.
type Config struct {
	// Routes are the patterns of the routes that HTTP counts separately: "/products/{id}" with chi, "GET /products/{id}" with http.ServeMux if
	// the pattern has a method. All others are "other". With chi's Mount and Route, a pattern is whole, as chi.Walk has it: "/api/products/{id}",
	// although the router that is mounted at /api calls it "/products/{id}"; "/api/*" of what is mounted and is no chi.Router. A Cache around
	// the whole chi.Router, instead of in its Use or With, knows no patterns.
	Routes []string

	// TraceID returns the id of the trace that a context is part of; empty: none. With it,
	// cacheguard_request_duration_seconds has exemplars with the label trace_id: OpenMetrics shows them, and Grafana links
	// them to their traces. It is called for each request. With OpenTelemetry:
	// trace.SpanContextFromContext(ctx).TraceID().String(), if that is valid and sampled. Default: no exemplars.
	TraceID func(context.Context) string

	// Detailed has more series, about three times as many: durations have 17 buckets instead of 6 or 7, stale ages 10 instead of 4, and
	// cacheguard_request_duration_seconds and cacheguard_http_request_duration_seconds have a histogram for each result; without it, there are
	// three, see the package comment. docs/production.md has the numbers. Default: false.
	Detailed bool
}

// Metrics are the instruments of one registry. They are safe for concurrent use.
type Metrics struct {
	routes   []string
	traceID  func(context.Context) string
	detailed bool

	watched *watched
	feeds   *feeds

	requests, avoided, joins, rejected, damaged, lost, takeovers, redisErrors *prometheus.CounterVec
	requestTime, loadTime, staleAge                                           *prometheus.HistogramVec

	lockWait, lockHold *prometheus.HistogramVec
	locksLost          *prometheus.CounterVec

	http, httpNotStored *prometheus.CounterVec
	httpTime            *prometheus.HistogramVec
}

// bounds are the bounds of the buckets.
type bounds struct{ durations, loads, ages []float64 }

// boundsOf has the few bounds among the many, so that rules about one of the few hold for both. The many are from 100 microseconds (a hit) to
// 30 seconds (LoadTimeout).
func boundsOf(detailed bool) bounds {
	if detailed {
		many := []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
		return bounds{many, many, []float64{.1, 1, 5, 10, 30, 60, 300, 600, 1800, 3600}}
	}
	few := []float64{.00025, .001, .005, .025, .1, .5, 5}
	return bounds{few, few[1:], []float64{1, 10, 60, 600}}
}

// New registers the instruments. The error is the registry's: for example, that such instruments are already
// registered.
func New(registerer prometheus.Registerer, cfg Config) (*Metrics, error) {
	if registerer == nil {
		return nil, errors.New("metrics: registerer is nil")
	}
	r, buckets := &registrar{to: registerer}, boundsOf(cfg.Detailed)
	m := &Metrics{
		routes:   whole(cfg.Routes),
		traceID:  cfg.TraceID,
		detailed: cfg.Detailed,
		watched:  &watched{guards: make(map[string]watchable)},
		feeds:    &feeds{all: make(map[string]func() cdc.Stats)},

		requests:    r.counter("requests_total", "Answers of Get, GetMany and Fetch, by how they came about.", "cache", "result"),
		avoided:     r.counter("loads_avoided_total", "Requests that would have loaded: they shared a load, or had a stale value.", "cache", "reason"),
		joins:       r.counter("joins_total", "Requests that waited for a load of another request of their instance.", "cache"),
		rejected:    r.counter("rejected_fills_total", "Loaded values that were not stored.", "cache", "reason"),
		damaged:     r.counter("damaged_entries_total", "Entries that could not be read.", "cache"),
		lost:        r.counter("leases_lost_total", "Loads that lost their lease.", "cache"),
		takeovers:   r.counter("takeovers_total", "Leases taken over from an instance that did not renew them.", "cache"),
		redisErrors: r.counter("redis_errors_total", "Operations on Redis that failed.", "cache", "op"),
		requestTime: r.histogram("request_duration_seconds", "How long answers took.", buckets.durations, "cache", "result"),
		loadTime:    r.histogram("load_duration_seconds", "Runs of loaders.", buckets.loads, "cache", "result"),
		staleAge:    r.histogram("stale_age_seconds", "How long past their TTL values were served.", buckets.ages, "cache"),

		lockWait:  r.histogram("lock_wait_seconds", "Calls that asked for a lock.", buckets.durations, "lock", "result"),
		lockHold:  r.histogram("lock_hold_seconds", "How long locks were held.", buckets.durations, "lock"),
		locksLost: r.counter("locks_lost_total", "Locks that were found lost when they were unlocked.", "lock", "reason"),

		http:          r.counter("http_requests_total", "Requests, by how they were answered.", "cache", "route", "result"),
		httpNotStored: r.counter("http_not_stored_total", "Requests that were passed on because their response cannot be stored.", "cache", "reason"),

		httpTime: r.histogram("http_request_duration_seconds", "How long requests took.", buckets.durations, "cache", "result"),
	}
	r.register(m.watched)
	r.register(m.feeds)
	if r.err != nil {
		r.undo()
		return nil, fmt.Errorf("metrics: %w", r.err)
	}
	return m, nil
}

// whole returns patterns as chi's RoutePattern has them: it joins those of mounted routers.
func whole(routes []string) []string {
	all := make([]string, len(routes))
	for i, route := range routes {
		all[i] = label(strings.ReplaceAll(route, "/*/", "/"))
	}
	return all
}

// label makes a label of a name: a registry with one that is not UTF-8 has no metrics at all.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// registrar registers instruments until one is refused.
type registrar struct {
	to   prometheus.Registerer
	done []prometheus.Collector
	err  error
}

func (r *registrar) register(c prometheus.Collector) {
	if r.err != nil {
		return
	}
	if r.err = r.to.Register(c); r.err == nil {
		r.done = append(r.done, c)
	}
}

// undo leaves the registry as it was.
func (r *registrar) undo() {
	for _, c := range r.done {
		r.to.Unregister(c)
	}
}

const namespace = "cacheguard"

func (r *registrar) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	r.register(c)
	return c
}

func (r *registrar) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	c := prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	r.register(c)
	return c
}

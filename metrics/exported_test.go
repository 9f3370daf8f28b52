package metrics

import (
	"context"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/middleware"
)

func TestAllSeriesAreThereFromTheBeginning(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	e.m.Lock("jobs")
	served := e.m.HTTP("pages")
	before := e.values()
	for _, key := range []string{"a", "b", "c"} {
		_, _ = cacheguard.Get(t.Context(), e.guard, key, func(context.Context) (string, error) { return "", nil })
		served(nil, middleware.Response{Result: middleware.Hit, Route: "/" + key})
	}
	for name := range e.values() {
		if _, found := before[name]; !found {
			t.Errorf("%s came later", name)
		}
	}
	e.want("cacheguard_http_requests_total{cache=pages,result=hit,route=other}", 3)
}

func TestMetricsMayBeRegisteredOnce(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	if err := reg.Register(prometheus.NewCounter(prometheus.CounterOpts{Name: "cacheguard_takeovers_total", Help: "Another's."})); err != nil {
		t.Fatal(err)
	}
	if _, err := New(reg, Config{}); err == nil {
		t.Error("a name that is taken is no error")
	}
	families, err := reg.Gather()
	if len(families) != 1 || err != nil {
		t.Errorf("it left %d families, %v", len(families), err)
	}
	if _, err := New(nil, Config{}); err == nil {
		t.Error("no registerer is no error")
	}
}

// exported is the names that are exported, with those of a histogram's parts.
func exported(t *testing.T) (map[string]bool, []*dto.MetricFamily) {
	t.Helper()
	e := newEverything(t)
	e.m.Lock("jobs")
	e.m.HTTP("pages")
	families, err := e.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, f := range families {
		names[f.GetName()] = true
		if f.GetType() == dto.MetricType_HISTOGRAM {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				names[f.GetName()+part] = true
			}
		}
	}
	return names, families
}

func TestNamesFollowPrometheusRules(t *testing.T) {
	t.Parallel()
	_, families := exported(t)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if len(problems) > 0 || err != nil {
		t.Errorf("%v, %v", problems, err)
	}
}

// The dashboard, the rules and the package comment name what is exported, and all of it.
func TestDashboardRulesAndDocumentationSpeakOfWhatIsExported(t *testing.T) {
	t.Parallel()
	names, families := exported(t)
	used := make(map[string]string)
	for _, file := range []string{"doc.go", "../examples/monitoring/dashboard.json", "../examples/monitoring/alerts.yml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`cacheguard_[a-z_]+`).FindAllString(string(text), -1) {
			used[name] = file
			if !names[name] {
				t.Errorf("%s speaks of %s, which is not exported", file, name)
			}
		}
		for _, f := range families {
			spoken := strings.Contains(string(text), f.GetName())
			if !spoken && !strings.HasSuffix(file, ".yml") {
				t.Errorf("%s does not speak of %s", file, f.GetName())
			}
		}
	}
	if len(used) == 0 {
		t.Error("nothing found")
	}
	labels := make(map[string]bool)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
	}
	for _, known := range []string{"cache", "result", "reason", "op", "lock", "route", "feed"} {
		delete(labels, known)
	}
	if len(labels) > 0 {
		t.Errorf("labels that nobody planned: %v", maps.Keys(labels))
	}
}

func TestFeedsAreReadFromTheirStats(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	for name, want := range map[string]float64{
		"reading": 1, "failing": 1, "behind_seconds": 2, "behind_bytes": 3, "retained_bytes": 4,
		"rows_total": 5, "invalidations_total": 6, "whole_total": 7, "reconnects_total": 8,
	} {
		e.want("cacheguard_feed_"+name+"{feed=log}", want)
	}
}

// shared is the server of the tests that neither break it nor look at its counters.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// SharedAddr is the address of the shared server, for the examples.
func SharedAddr() string { return shared.Addr() }

package metrics

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
)

type traceKey struct{}

func TestRequestsOfATraceHaveItsIDAsTheirExemplar(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m, err := New(reg, Config{TraceID: func(ctx context.Context) string {
		id, _ := ctx.Value(traceKey{}).(string)
		return id
	}})
	if err != nil {
		t.Fatal(err)
	}
	of := m.Guard("shop")
	for _, id := range []string{"", strings.Repeat("x", 121), "\xff", "4bf92f35"} { // what Prometheus does not take is left out
		of.Observe(context.WithValue(t.Context(), traceKey{}, id), cacheguard.Event{What: cacheguard.EventGet, Key: "k", Outcome: cacheguard.Hit, Took: time.Millisecond})
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range families {
		for _, series := range f.GetMetric() {
			for _, bucket := range series.GetHistogram().GetBucket() {
				for _, label := range bucket.GetExemplar().GetLabel() {
					found = append(found, f.GetName()+" "+label.GetName()+"="+label.GetValue())
				}
			}
		}
	}
	if len(found) != 1 || found[0] != "cacheguard_request_duration_seconds trace_id=4bf92f35" {
		t.Error(found)
	}
}

func TestABypassShowsInTheMetrics(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	e.guard.Bypass(true)
	_, _ = cacheguard.Get(t.Context(), e.guard, "k", func(context.Context) (string, error) { return "v", nil })
	e.want("cacheguard_bypassed{cache=shop}", 1)
	e.want("cacheguard_requests_total{cache=shop,result=bypassed}", 1)
}

func TestLoadsThatAreAvoidedAreCounted(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	of := e.m.Guard("shop")
	for _, outcome := range outcomes {
		of.Observe(t.Context(), cacheguard.Event{What: cacheguard.EventGet, Key: "k", Outcome: outcome, Took: time.Millisecond})
	}
	e.want("cacheguard_loads_avoided_total{cache=shop,reason=shared}", 1)
	e.want("cacheguard_loads_avoided_total{cache=shop,reason=stale}", 1)
}

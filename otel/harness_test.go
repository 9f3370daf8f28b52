package otel

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// observed is a service of some instances, whose telemetry is kept.
type observed struct {
	t         *testing.T
	telemetry *Telemetry
	spans     *tracetest.InMemoryExporter
	reader    *sdkmetric.ManualReader
	redis     *redis.Client
	prefix    string
	guards    []*cacheguard.Guard
	joined    chan string // keys, as Gets join a load
}

func observe(t *testing.T, instances int, cfg Config, options ...sdktrace.TracerProviderOption) *observed {
	t.Helper()
	o := &observed{
		t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader(), redis: shared.Client(t),
		prefix: "test-" + rand.Text(), joined: make(chan string, 100),
	}
	cfg.TracerProvider = sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(o.spans))...)
	cfg.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))
	var err error
	if o.telemetry, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.telemetry.Close(); err != nil {
			t.Error(err)
		}
	})
	for range instances {
		joins := cacheguard.On(cacheguard.EventJoin, func(_ context.Context, e cacheguard.Event) { o.joined <- e.Key })
		g, err := cacheguard.New(shared.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: o.prefix, Hooks: o.telemetry.Guard("shop"), Observers: []cacheguard.Observer{o.telemetry.Observer("shop"), joins}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() }) // always nil
		o.guards = append(o.guards, g)
	}
	return o
}

// awaitWaiter returns when another instance waits for the load of the key.
func (o *observed) awaitWaiter(key string) {
	o.t.Helper()
	redistest.Await(o.t, "an instance waits for the load", func() bool {
		fields, err := o.redis.HKeys(context.Background(), o.prefix+":{"+key+"}:lease").Result()
		return err == nil && slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "inbox:") })
	})
}

// close ends the instances, and with them every span.
func (o *observed) close() tracetest.SpanStubs {
	for _, g := range o.guards {
		_ = g.Close() // always nil
	}
	return o.spans.GetSpans()
}

// named are the spans of a name.
func named(spans tracetest.SpanStubs, name string) (found tracetest.SpanStubs) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// one is the only span of a name.
func (o *observed) one(spans tracetest.SpanStubs, name string) tracetest.SpanStub {
	o.t.Helper()
	found := named(spans, name)
	if len(found) != 1 {
		o.t.Fatalf("%d spans are %s, want 1, of %v", len(found), name, names(spans))
	}
	return found[0]
}

func names(spans tracetest.SpanStubs) (all []string) {
	for _, s := range spans {
		all = append(all, s.Name)
	}
	return all
}

func has(s tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// counts is what the metrics say, by name{attribute=value,...}; of histograms, the count.
func (o *observed) counts() map[string]int64 {
	o.t.Helper()
	var all metricdata.ResourceMetrics
	if err := o.reader.Collect(context.Background(), &all); err != nil {
		o.t.Fatal(err)
	}
	counts := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					counts[m.Name+labels(p.Attributes)] = int64(p.Count)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					counts[m.Name+labels(p.Attributes)] = p.Value
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					counts[m.Name+labels(p.Attributes)] = int64(p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					counts[m.Name+labels(p.Attributes)] = int64(p.Value)
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					counts[m.Name+labels(p.Attributes)] = p.Value
				}
			}
		}
	}
	return counts
}

func labels(set attribute.Set) string {
	var all []string
	for _, a := range set.ToSlice() {
		all = append(all, string(a.Key)+"="+a.Value.String())
	}
	return "{" + strings.Join(all, ",") + "}"
}

// stored returns when the load of the key is stored: a caller has its value before that.
func (o *observed) stored(key string) {
	o.t.Helper()
	redistest.Await(o.t, "the value is stored", func() bool {
		n, err := o.redis.Exists(context.Background(), o.prefix+":{"+key+"}").Result()
		return err == nil && n == 1
	})
}

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

package otel

import (
	"context"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

// bucketsOfGets returns the buckets of cacheguard.get.duration.
func bucketsOfGets(t *testing.T, options ...sdk.Option) int {
	t.Helper()
	reader := sdk.NewManualReader()
	telemetry, err := New(Config{MeterProvider: sdk.NewMeterProvider(append(options, sdk.WithReader(reader))...)})
	if err != nil {
		t.Fatal(err)
	}
	telemetry.Guard("shop").OnGet(t.Context(), "k", cacheguard.Hit, time.Millisecond, nil)
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if data, is := m.Data.(metricdata.Histogram[float64]); is {
			return len(data.DataPoints[0].Bounds)
		}
	}
	t.Fatal("there is no histogram")
	return 0
}

func TestDurationsHaveFewBucketsUnlessAViewHasMore(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "bounds", bucketsOfGets(t), 7)
	expect.Equal(t, "bounds of a View", bucketsOfGets(t, sdk.WithView(sdk.NewView(
		sdk.Instrument{Name: "cacheguard.*.duration"},
		sdk.Stream{Aggregation: sdk.AggregationExplicitBucketHistogram{Boundaries: []float64{.1, .2, .3, .4, .5, .6, .7, .8, .9}}},
	))), 9)
}

package otel

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	shown "github.com/cacheguard/go/internal/watch/observe"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

func TestMetricsCountWhatHappened(t *testing.T) {
	t.Parallel()
	o := observe(t, 1, Config{})
	g := o.guards[0]
	o.telemetry.Watch("shop", g)
	why := errors.New("broken")
	for range 2 {
		_, err := cacheguard.Get(t.Context(), g, "k", func(context.Context) (int, error) {
			expect.Equal(t, "loads that run", o.counts()["cacheguard.loads_in_flight{cacheguard.cache=shop}"], 1)
			return 1, nil
		})
		expect.ErrorIs(t, err, nil)
		o.stored("k")
	}
	_, err := cacheguard.Get(t.Context(), g, "bad", func(context.Context) (int, error) { return 0, why })
	expect.ErrorIs(t, err, why)
	_, err = cacheguard.Get(t.Context(), g, "huge", func(ctx context.Context) (int, error) { return 0, g.Invalidate(ctx, "huge") })
	expect.ErrorIs(t, err, nil)
	o.close()
	counts := o.counts()
	for name, want := range map[string]int64{
		"cacheguard.get.duration{cacheguard.cache=shop,cacheguard.outcome=hit}":                      1,
		"cacheguard.get.duration{cacheguard.cache=shop,cacheguard.outcome=loaded}":                   2,
		"cacheguard.get.duration{cacheguard.cache=shop,cacheguard.outcome=loaded,error.type=_OTHER}": 1,
		"cacheguard.load.duration{cacheguard.cache=shop}":                                            2,
		"cacheguard.load.duration{cacheguard.cache=shop,error.type=_OTHER}":                          1,
		"cacheguard.fill.rejected{cacheguard.cache=shop,cacheguard.reason=overtaken}":                1,
		"cacheguard.loads_in_flight{cacheguard.cache=shop}":                                          0,
		"cacheguard.pending_invalidations{cacheguard.cache=shop}":                                    0,
		"cacheguard.intents{cacheguard.cache=shop}":                                                  0,
	} {
		if got, there := counts[name]; !there || got != want {
			t.Errorf("%s is %d (%t), want %d; there are %v", name, got, there, want, counts)
		}
	}
}

func TestANumberThatIsAddedIsExported(t *testing.T) {
	t.Parallel()
	o := observe(t, 1, Config{})
	seen, _ := shown.Look[shown.Guard](o.guards[0])
	seen.Numbers.Total("biscuits_total", "Biscuits that were eaten.").Add(7)
	o.telemetry.Watch("shop", o.guards[0])
	expect.Equal(t, "biscuits", o.counts()["cacheguard.biscuits{cacheguard.cache=shop}"], 7)
	o.telemetry.Watch("shop", o.guards[0])
	expect.Equal(t, "biscuits, watched again", o.counts()["cacheguard.biscuits{cacheguard.cache=shop}"], 7)
}

func TestLocksHaveSpansAndMetrics(t *testing.T) {
	t.Parallel()
	o := observe(t, 0, Config{Keys: true})
	one, err := mutex.New(o.redis, mutex.Config{RedisTimeout: redistest.Patience, Prefix: o.prefix, Hooks: o.telemetry.Lock("jobs")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close() }) // always nil
	many, err := rwlock.New(o.redis, rwlock.Config{RedisTimeout: redistest.Patience, Prefix: o.prefix + "-rw", Hooks: o.telemetry.Lock("files")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = many.Close() }) // always nil
	few, err := semaphore.New(o.redis, semaphore.Config{RedisTimeout: redistest.Patience, Prefix: o.prefix, Permits: 2, Hooks: o.telemetry.Lock("reports")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = few.Close() }) // always nil

	err = one.Do(t.Context(), "import", func(ctx context.Context, _ *mutex.Lease) error {
		_, err := one.TryLock(ctx, "import")
		expect.ErrorIs(t, err, mutex.ErrNotAcquired)
		expect.ErrorIs(t, few.Do(ctx, "r", func(context.Context, *semaphore.Lease) error { return nil }), nil)
		return many.RDo(ctx, "f", func(context.Context, *rwlock.Lease) error { return nil })
	})
	expect.ErrorIs(t, err, nil)
	var got []string
	for _, span := range o.spans.GetSpans() {
		got = append(got, has(span, lockKey)+" "+has(span, nameKey)+" "+has(span, callKey)+" "+has(span, outcomeKey))
		expect.Equal(t, "status", span.Status.Code, codes.Unset)
	}
	want := []string{"jobs import Lock acquired", "jobs import TryLock refused", "reports r Lock acquired", "files f RLock acquired"}
	if len(got) != len(want) {
		t.Fatalf("spans are %q, want %q", got, want)
	}
	for i := range want {
		expect.Equal(t, "span", got[i], want[i])
	}
	counts := o.counts()
	for name, want := range map[string]int64{
		"cacheguard.lock.wait.duration{cacheguard.lock=jobs,cacheguard.outcome=acquired}":  1,
		"cacheguard.lock.wait.duration{cacheguard.lock=jobs,cacheguard.outcome=refused}":   1,
		"cacheguard.lock.wait.duration{cacheguard.lock=files,cacheguard.outcome=acquired}": 1,
		"cacheguard.lock.hold.duration{cacheguard.lock=jobs}":                              1,
		"cacheguard.lock.hold.duration{cacheguard.lock=reports}":                           1,
		"cacheguard.lock.hold.duration{cacheguard.lock=files}":                             1,
	} {
		expect.Equal(t, name, counts[name], want)
	}
}

func TestFeedsAreReadFromTheirStats(t *testing.T) {
	t.Parallel()
	o := observe(t, 0, Config{})
	o.telemetry.Feed("log", func() cdc.Stats { return cdc.Stats{} })
	o.telemetry.Feed("log", func() cdc.Stats {
		return cdc.Stats{
			Reading: true, Behind: 2 * time.Second, BehindBytes: 3, Retained: 4, Rows: 5, Invalidations: 6, Whole: 7, Reconnects: 8, Err: errors.New("trouble"),
		}
	})
	counts := o.counts()
	for name, want := range map[string]int64{
		"reading": 1, "failing": 1, "behind": 2, "behind.bytes": 3, "retained.bytes": 4, "rows": 5, "invalidations": 6, "whole": 7, "reconnects": 8,
	} {
		expect.Equal(t, name, counts["cacheguard.feed."+name+"{cacheguard.feed=log}"], want)
	}
	expect.ErrorIs(t, o.telemetry.Close())
	expect.Equal(t, "metrics after Close", len(o.counts()), 0)
}

// bucketsOfGets returns the buckets of cacheguard.get.duration.
func bucketsOfGets(t *testing.T, options ...sdk.Option) int {
	t.Helper()
	reader := sdk.NewManualReader()
	telemetry, err := New(Config{MeterProvider: sdk.NewMeterProvider(append(options, sdk.WithReader(reader))...)})
	if err != nil {
		t.Fatal(err)
	}
	telemetry.Observer("shop").Observe(t.Context(), cacheguard.Event{What: cacheguard.EventGet, Key: "k", Outcome: cacheguard.Hit, Took: time.Millisecond})
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

package otel

import (
	"errors"
	"fmt"

	otelapi "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope names the instrumentation.
const scope = "github.com/cacheguard/go/otel"

// The attributes.
const (
	cacheKey     = attribute.Key("cacheguard.cache")
	lockKey      = attribute.Key("cacheguard.lock")
	feedKey      = attribute.Key("cacheguard.feed")
	outcomeKey   = attribute.Key("cacheguard.outcome")
	reasonKey    = attribute.Key("cacheguard.reason")
	operationKey = attribute.Key("cacheguard.operation")
	callKey      = attribute.Key("cacheguard.call")       // of a lock: Lock, TryLock, RLock or TryRLock
	keysKey      = attribute.Key("cacheguard.keys")       // with Config.Keys
	countKey     = attribute.Key("cacheguard.keys.count") // of a get_many, an update, an invalidate and their loads
	nameKey      = attribute.Key("cacheguard.lock.name")  // with Config.Keys
	errorKey     = attribute.Key("error.type")
)

// Config says where spans and metrics go.
type Config struct {
	TracerProvider trace.TracerProvider // default: the global one
	MeterProvider  metric.MeterProvider // default: the global one

	// Keys puts keys and the names of locks on spans; for a call with many keys, the first 32. They may reveal more about your
	// users than readers of traces should know. Default: off. The texts of errors are on spans in any case, and those of this
	// library name the key.
	Keys bool
}

// Telemetry makes the Hooks of guards and locks. It is safe for concurrent use.
type Telemetry struct {
	tracer       trace.Tracer
	keys         bool
	watched      watched
	feeds        feeds
	meter        metric.Meter
	registration metric.Registration // of the feeds

	gets, loads, waits, staleAge       metric.Float64Histogram
	lockWaits, lockHolds               metric.Float64Histogram
	rejected, damaged, lost, takeovers metric.Int64Counter
	redisErrors, locksLost             metric.Int64Counter
}

// buckets are few, as each is a series for each outcome; a View of the SDK can have others.
var buckets = metric.WithExplicitBucketBoundaries(.00025, .001, .005, .025, .1, .5, 5)

// ageBuckets are for how long past their TTL values are served.
var ageBuckets = metric.WithExplicitBucketBoundaries(1, 10, 60, 600)

// New makes the instruments. The error is the meter's, about instruments that it cannot make.
func New(cfg Config) (*Telemetry, error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otelapi.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otelapi.GetMeterProvider()
	}
	m := &maker{meter: cfg.MeterProvider.Meter(scope)}
	t := &Telemetry{
		tracer: cfg.TracerProvider.Tracer(scope), meter: m.meter, keys: cfg.Keys,

		gets:      m.duration("get", "How long answers took.", buckets),
		loads:     m.duration("load", "Runs of loaders.", buckets),
		waits:     m.duration("wait", "Waits for the loads of other calls.", buckets),
		lockWaits: m.duration("lock.wait", "Calls that asked for a lock.", buckets),
		lockHolds: m.duration("lock.hold", "How long locks were held.", buckets),
		staleAge:  m.histogram("stale.age", "How long past their TTL values were served.", ageBuckets),

		rejected:    m.counter("fill.rejected", "{value}", "Loaded values that were not stored."),
		damaged:     m.counter("entry.damaged", "{entry}", "Entries that could not be read."),
		lost:        m.counter("lease.lost", "{lease}", "Loads that lost their lease."),
		takeovers:   m.counter("lease.takeovers", "{lease}", "Leases taken over from an instance that did not renew them."),
		redisErrors: m.counter("redis.errors", "{error}", "Operations on Redis that failed."),
		locksLost:   m.counter("lock.lost", "{lock}", "Locks that were found lost when they were unlocked."),
	}
	if m.err != nil {
		return nil, fmt.Errorf("otel: %w", m.err)
	}
	fed, err := t.feeds.make(m.meter)
	if err != nil {
		return nil, err
	}
	if t.registration, err = m.meter.RegisterCallback(t.feeds.observe, fed...); err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return t, nil
}

// Close ends what Watch and Feed began. The Hooks go on working. It returns the meter's error.
func (t *Telemetry) Close() error {
	return errors.Join(t.registration.Unregister(), t.watched.close())
}

package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/cacheguard/go/cacheguard"
)

// Guard returns the Hooks of a Guard, whose spans have the attribute cacheguard.cache=name.
func (t *Telemetry) Guard(name string) cacheguard.Hooks {
	return cacheguard.Hooks{Begin: t.tasks(cacheKey.String(text(name))), Origin: origin}
}

// Observer returns an Observer of a Guard, whose metrics have the attribute cacheguard.cache=name.
func (t *Telemetry) Observer(name string) cacheguard.Observer {
	cache := cacheKey.String(text(name))
	return &observer{t, cache, metric.WithAttributeSet(attribute.NewSet(cache))}
}

type observer struct {
	*Telemetry

	cache   attribute.KeyValue
	counted metric.MeasurementOption
}

// Observe is part of cacheguard.Observer.
func (o *observer) Observe(ctx context.Context, e cacheguard.Event) {
	switch e.What {
	case cacheguard.EventGet:
		attributes := append(make([]attribute.KeyValue, 0, 3), o.cache)
		if e.Outcome != "" {
			attributes = append(attributes, outcomeKey.String(string(e.Outcome)))
		}
		record(ctx, o.gets, e.Took, attributes, e.Err)
	case cacheguard.EventLoad:
		record(context.Background(), o.loads, e.Took, []attribute.KeyValue{o.cache}, e.Err)
	case cacheguard.EventStale:
		o.staleAge.Record(context.Background(), e.Took.Seconds(), o.counted)
	case cacheguard.EventRejected:
		o.add(o.rejected, reasonKey.String("overtaken"))
	case cacheguard.EventUnstorable:
		o.add(o.rejected, reasonKey.String("unstorable"))
	case cacheguard.EventDamaged, cacheguard.EventUnread, cacheguard.EventAlien:
		o.add(o.damaged)
	case cacheguard.EventLeaseLost:
		o.add(o.lost)
	case cacheguard.EventTakeover:
		o.add(o.takeovers)
	case cacheguard.EventRedisError:
		var failed *cacheguard.RedisError
		if errors.As(e.Err, &failed) {
			o.add(o.redisErrors, operationKey.String(failed.Op))
		}
	}
}

func (o *observer) add(c metric.Int64Counter, more ...attribute.KeyValue) {
	c.Add(context.Background(), 1, metric.WithAttributes(append(more, o.cache)...))
}

// record records a duration, with the kind of the error if there is one.
func record(ctx context.Context, h metric.Float64Histogram, took time.Duration, of []attribute.KeyValue, err error) {
	if isFailure(err) {
		of = append(of, errorKey.String(errorType(err)))
	}
	h.Record(ctx, took.Seconds(), metric.WithAttributes(of...))
}

// isFailure reports whether the error is more than the word that there is nothing.
func isFailure(err error) bool {
	return err != nil && !errors.Is(err, cacheguard.ErrNotFound) && !errors.Is(err, cacheguard.ErrNotCached)
}

// errorType names the kind of an error. There are few kinds.
func errorType(err error) string {
	var redis *cacheguard.RedisError
	var panicked *cacheguard.PanicError
	var load *cacheguard.LoadError
	switch {
	case errors.As(err, &panicked):
		return "panic"
	case errors.As(err, &redis):
		return "redis"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, cacheguard.ErrClosed):
		return "closed"
	case errors.As(err, &load):
		return "load"
	}
	return "_OTHER"
}

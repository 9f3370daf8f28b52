package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/cache/pages"
)

// Guard returns the Hooks of a Guard, whose spans and metrics have the attribute cacheguard.cache=name.
func (t *Telemetry) Guard(name string) cacheguard.Hooks {
	cache := cacheKey.String(name)
	counted := metric.WithAttributeSet(attribute.NewSet(cache))
	add := func(c metric.Int64Counter, more ...attribute.KeyValue) {
		c.Add(context.Background(), 1, metric.WithAttributes(append(more, cache)...))
	}
	return cacheguard.Hooks{
		Begin:  t.tasks(cache),
		Origin: origin,
		OnGet: func(ctx context.Context, key string, outcome cacheguard.Outcome, took time.Duration, err error) {
			if pages.IsRead(ctx, key) {
				return // a page may need several
			}
			attributes := append(make([]attribute.KeyValue, 0, 3), cache)
			if outcome != "" {
				attributes = append(attributes, outcomeKey.String(string(outcome)))
			}
			record(ctx, t.gets, took, attributes, err)
		},
		OnLoad: func(_ string, took time.Duration, err error) {
			record(context.Background(), t.loads, took, []attribute.KeyValue{cache}, err)
		},
		OnStale: func(_ string, past time.Duration) {
			t.staleAge.Record(context.Background(), past.Seconds(), counted)
		},
		OnRejected:   func(string) { add(t.rejected, reasonKey.String("overtaken")) },
		OnUnstorable: func(string, error) { add(t.rejected, reasonKey.String("unstorable")) },
		OnDamaged:    func(string, error) { add(t.damaged) },
		OnLeaseLost:  func(string) { add(t.lost) },
		OnTakeover:   func(string) { add(t.takeovers) },
		OnRedisError: func(err *cacheguard.RedisError) { add(t.redisErrors, operationKey.String(err.Op)) },
		OnBreaker: func(open bool) {
			change := int64(-1)
			if open {
				change = 1
			}
			t.breakers.Add(context.Background(), change, counted)
		},
	}
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

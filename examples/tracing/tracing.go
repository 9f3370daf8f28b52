package main

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/cacheguard/go/cacheguard"
)

// traced is a value with the span of the load that made it. It is stored with the value: so whoever gets the value learns of
// the load, also one that waited on another instance.
type traced[V any] struct {
	Value  V
	LoadBy string // a traceparent (W3C Trace Context); empty if the load was not traced
}

var w3c propagation.TraceContext

// get is cacheguard.Get with spans: one for the call, and one for the load, if there is one, within that of the call that
// began it. The span of each call that got its value from another's load is linked to that load.
//
// A load whose value comes later than its caller's end goes on; its span then ends after its parent. Loads that fail have a
// span with the error, but nobody is linked to it: there is no value that could tell.
func get[V any](
	ctx context.Context, tracer trace.Tracer, g *cacheguard.Guard, key string, load func(context.Context) (V, error),
) (_ V, err error) {
	ctx, span := tracer.Start(ctx, "cache.get")
	defer func() { end(span, err) }()
	t, err := cacheguard.Get(ctx, g, key, func(ctx context.Context) (t traced[V], err error) {
		ctx, span := tracer.Start(ctx, "cache.load")
		defer func() { end(span, err) }()
		carrier := propagation.MapCarrier{}
		w3c.Inject(ctx, carrier)
		t.LoadBy = carrier["traceparent"]
		t.Value, err = load(ctx)
		return t, err
	})
	from := trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": t.LoadBy}))
	if from.IsValid() && from.TraceID() != span.SpanContext().TraceID() { // its own load is in its own trace anyway
		span.AddLink(trace.Link{SpanContext: from})
	}
	return t.Value, err
}

// end ends a span.
func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// hooks tell each call's span how its value came about: loaded, shared, hit, stale and so on.
func hooks() cacheguard.Hooks {
	return cacheguard.Hooks{
		OnGet: func(ctx context.Context, _ string, outcome cacheguard.Outcome, _ time.Duration, _ error) {
			trace.SpanFromContext(ctx).SetAttributes(attribute.String("cache.outcome", string(outcome)))
		},
	}
}

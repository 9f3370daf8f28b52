package otel

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/cacheguard/go/cacheguard"
)

// maxKeys is how many keys a span has.
const maxKeys = 32

// tasks returns the hook that makes the spans of a Guard.
func (t *Telemetry) tasks(cache attribute.KeyValue) func(
	context.Context, cacheguard.Task, []string) (context.Context, func(cacheguard.End)) {
	return func(ctx context.Context, task cacheguard.Task, keys []string) (context.Context, func(cacheguard.End)) {
		began := time.Now()
		ctx, span := t.tracer.Start(ctx, "cacheguard."+string(task))
		if span.IsRecording() {
			span.SetAttributes(t.about(cache, task, keys)...)
		}
		return ctx, func(end cacheguard.End) {
			if task == cacheguard.TaskWait {
				record(ctx, t.waits, time.Since(began), []attribute.KeyValue{cache}, end.Err)
				if load, ok := loadOf(end.Origin); ok {
					span.AddLink(trace.Link{SpanContext: load})
				}
			}
			if end.Outcome != "" && span.IsRecording() {
				span.SetAttributes(outcomeKey.String(string(end.Outcome)))
			}
			if isFailure(end.Err) {
				fail(span, errorType(end.Err), end.Err)
			}
			span.End()
		}
	}
}

// about is what a span says of its task.
func (t *Telemetry) about(cache attribute.KeyValue, task cacheguard.Task, keys []string) []attribute.KeyValue {
	all := []attribute.KeyValue{cache}
	if len(keys) > 1 || task != cacheguard.TaskGet && task != cacheguard.TaskWait {
		all = append(all, countKey.Int(len(keys)))
	}
	if t.keys {
		of := slices.Clone(keys[:min(len(keys), maxKeys)])
		for i, key := range of {
			of[i] = text(key)
		}
		all = append(all, keysKey.StringSlice(of))
	}
	return all
}

// text is what an attribute can have: exporters drop a whole batch for one that is not UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func fail(span trace.Span, kind string, err error) {
	if span.IsRecording() {
		span.SetAttributes(errorKey.String(kind))
		span.SetStatus(codes.Error, text(err.Error()))
	}
}

// An origin is the id of a trace and that of a span in it, one behind the other.
const (
	traceLen  = len(trace.TraceID{})
	originLen = traceLen + len(trace.SpanID{})
)

// origin returns what waiters for a load of the context get to know: the span that the load is a part of, if anybody keeps that.
func origin(ctx context.Context) string {
	of := trace.SpanContextFromContext(ctx)
	if !of.IsValid() || !of.IsSampled() {
		return ""
	}
	traceID, spanID := of.TraceID(), of.SpanID()
	return string(traceID[:]) + string(spanID[:])
}

// loadOf is the inverse. Its argument comes from Redis.
func loadOf(origin string) (trace.SpanContext, bool) {
	if len(origin) != originLen {
		return trace.SpanContext{}, false
	}
	of := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID([]byte(origin[:traceLen])), SpanID: trace.SpanID([]byte(origin[traceLen:])),
		TraceFlags: trace.FlagsSampled, Remote: true,
	})
	return of, of.IsValid()
}

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func TestThoseWhoWaitAreLinkedToTheLoad(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	s := &settings{query: 50e6}
	spans, err := s.trace(t.Context())
	if err != nil || len(spans) != 4 {
		t.Fatalf("%d spans, %v", len(spans), err)
	}
	var load tracetest.SpanStub
	for _, span := range spans {
		if span.Name == "cache.load" {
			load = span
		}
	}
	linked := 0
	for _, span := range spans {
		switch {
		case span.Name == "cache.load":
		case span.SpanContext.Equal(load.Parent):
			if len(span.Links) != 0 {
				t.Errorf("the load's own request has links: %v", span.Links)
			}
		case len(span.Links) == 1 && span.Links[0].SpanContext.SpanID() == load.SpanContext.SpanID() &&
			span.Links[0].SpanContext.TraceID() == load.SpanContext.TraceID():
			linked++
		}
		if span.Name == "cache.get" && len(span.Attributes) != 1 {
			t.Errorf("a request says of its outcome %v", span.Attributes)
		}
	}
	if linked != 2 {
		t.Errorf("%d spans are linked to the load, want 2: %v", linked, rowsOf(spans))
	}
}

func TestAFailedLoadIsInItsSpans(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	tracer := sdk.NewTracerProvider(sdk.WithSyncer(exporter)).Tracer("test")
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{Prefix: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	why := errors.New("the database is on fire")
	if _, err := get(t.Context(), tracer, guard, "k", func(context.Context) (int, error) { return 0, why }); !errors.Is(err, why) {
		t.Errorf("error is %v, want %v", err, why)
	}
	for _, span := range exporter.GetSpans() {
		if span.Status.Description != why.Error() || len(span.Links) > 0 {
			t.Errorf("%s: %v, links %v", span.Name, span.Status, span.Links)
		}
	}
	if n := len(exporter.GetSpans()); n != 2 {
		t.Errorf("%d spans, want 2", n)
	}
}

func TestTheProgramShowsTheLinks(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	var out, problems strings.Builder
	if code := new(settings).program().Execute(t.Context(), []string{"-short"}, &out, &problems); code != 0 {
		t.Errorf("exit code %d: %s", code, problems.String())
	}
	for _, want := range []string{"cache.load", "loaded", "shared"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the output:\n%s", want, out.String())
		}
	}
}

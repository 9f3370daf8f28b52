package main

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func TestThoseWhoWaitAreLinkedToTheLoad(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	s := &settings{query: 50e6}
	spans, err := s.trace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gets, linked := 0, 0
	var load tracetest.SpanStub
	for _, span := range spans {
		if span.Name == "cacheguard.load" {
			load = span
		}
	}
	for _, span := range spans {
		switch span.Name {
		case "cacheguard.get":
			gets++
		case "cacheguard.wait":
			if len(span.Links) == 1 && span.Links[0].SpanContext.SpanID() == load.Parent.SpanID() {
				linked++
			}
		}
	}
	// A get that comes when the value is there is a hit, and waits for nobody; otel's tests force the waits.
	if gets != 3 || load.Name == "" || linked != len(spans)-4 {
		t.Errorf("%d gets, %d waits are linked to the load, of %v", gets, linked, rowsOf(spans))
	}
}

func TestTheProgramShowsTheLinks(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	var out, problems strings.Builder
	if code := new(settings).program().Execute(t.Context(), []string{"-short"}, &out, &problems); code != 0 {
		t.Errorf("exit code %d: %s", code, problems.String())
	}
	for _, want := range []string{"cacheguard.get", "cacheguard.load", "loaded"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the output:\n%s", want, out.String())
		}
	}
}

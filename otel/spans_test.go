package otel

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

// blocking is a loader that signals when it begins, and returns when it may.
func blocking(err error) (load func(context.Context) (int, error), began, mayEnd chan struct{}) {
	began, mayEnd = make(chan struct{}), make(chan struct{})
	return func(context.Context) (int, error) {
		close(began)
		<-mayEnd
		return 7, err
	}, began, mayEnd
}

// unused is a loader that must not run.
func unused(t *testing.T) func(context.Context) (int, error) {
	return func(context.Context) (int, error) {
		t.Error("a second load ran")
		return 0, nil
	}
}

// awaitedElsewhere makes one instance load and another one wait, and returns the spans: the load's, the wait's, and those of the gets that
// these are in.
func (o *observed) awaitedElsewhere(failure error) (loader, load, waiter, wait tracetest.SpanStub, errs [2]error) {
	o.t.Helper()
	load7, began, mayEnd := blocking(failure)
	done := make(chan struct{}, 2)
	go func() { // owner: the test; stop: mayEnd; joined by done
		_, errs[0] = cacheguard.Get(o.t.Context(), o.guards[0], "k", load7)
		done <- struct{}{}
	}()
	<-began
	go func() { // owner: the test; stop: mayEnd; joined by done
		_, errs[1] = cacheguard.Get(o.t.Context(), o.guards[1], "k", unused(o.t))
		done <- struct{}{}
	}()
	o.awaitWaiter("k")
	close(mayEnd)
	<-done
	<-done
	spans := o.close()
	load, wait = o.one(spans, "cacheguard.load"), o.one(spans, "cacheguard.wait")
	for _, get := range named(spans, "cacheguard.get") {
		switch get.SpanContext.SpanID() {
		case load.Parent.SpanID():
			loader = get
		case wait.Parent.SpanID():
			waiter = get
		}
	}
	if loader.Name == "" || waiter.Name == "" {
		o.t.Fatalf("load and wait are in no get: %v", names(spans))
	}
	return loader, load, waiter, wait, errs
}

func TestAWaitIsLinkedToTheLoadOfAnotherInstance(t *testing.T) {
	t.Parallel()
	loader, load, waiter, wait, errs := observe(t, 2, Config{}).awaitedElsewhere(nil)
	expect.ErrorIs(t, errors.Join(errs[0], errs[1]), nil)
	if len(wait.Links) != 1 || wait.Links[0].SpanContext.SpanID() != loader.SpanContext.SpanID() ||
		wait.Links[0].SpanContext.TraceID() != load.SpanContext.TraceID() || !wait.Links[0].SpanContext.IsRemote() {
		t.Errorf("the wait's links are %v, want one to %v", wait.Links, loader.SpanContext)
	}
	expect.Equal(t, "outcome of the loading call", has(loader, outcomeKey), "loaded")
	expect.Equal(t, "outcome of the waiter", has(waiter, outcomeKey), "shared")
	expect.Equal(t, "cache", has(wait, cacheKey), "shop")
	if loader.SpanContext.TraceID() == waiter.SpanContext.TraceID() {
		t.Error("the two requests are in one trace")
	}
}

func TestAWaitIsLinkedToALoadThatFailed(t *testing.T) {
	t.Parallel()
	why := errors.New("the database is on fire")
	loader, load, waiter, wait, errs := observe(t, 2, Config{}).awaitedElsewhere(why)
	expect.ErrorIs(t, errs[0], why)
	if !errors.As(errs[1], new(*cacheguard.LoadError)) {
		t.Errorf("the other instance's error is %v", errs[1])
	}
	if len(wait.Links) != 1 || wait.Links[0].SpanContext.SpanID() != loader.SpanContext.SpanID() {
		t.Errorf("the wait's links are %v, want one to %v", wait.Links, loader.SpanContext)
	}
	for _, s := range []tracetest.SpanStub{loader, load, waiter, wait} {
		if s.Status.Code != codes.Error || !strings.Contains(s.Status.Description, why.Error()) {
			t.Errorf("%s: %v", s.Name, s.Status)
		}
	}
	expect.Equal(t, "error of the loading call", has(load, errorKey), "_OTHER")
	expect.Equal(t, "error of the waiter", has(waiter, errorKey), "load")
}

func TestAWaitWithinAnInstanceIsLinkedToTheGetThatLoads(t *testing.T) {
	t.Parallel()
	o := observe(t, 1, Config{})
	load, began, mayEnd := blocking(nil)
	done := make(chan error, 2)
	get := func(load func(context.Context) (int, error)) {
		_, err := cacheguard.Get(t.Context(), o.guards[0], "k", load)
		done <- err
	}
	go get(load) // owner: the test; stop: mayEnd; joined by done
	<-began
	go get(unused(t)) // owner: the test; stop: mayEnd; joined by done
	<-o.joined
	close(mayEnd)
	expect.ErrorIs(t, errors.Join(<-done, <-done), nil)
	spans := o.close()
	wait, loaded := o.one(spans, "cacheguard.wait"), o.one(spans, "cacheguard.load")
	if len(wait.Links) != 1 || wait.Links[0].SpanContext.SpanID() != loaded.Parent.SpanID() {
		t.Errorf("the wait's links are %v, want one to %v", wait.Links, loaded.Parent)
	}
}

func TestALoadThatIsNotSampledLeavesNoOriginInRedis(t *testing.T) {
	t.Parallel()
	o := observe(t, 1, Config{}, sdktrace.WithSampler(sdktrace.NeverSample()))
	load, began, mayEnd := blocking(nil)
	done := make(chan error, 1)
	go func() { // owner: the test; stop: mayEnd; joined by done
		_, err := cacheguard.Get(t.Context(), o.guards[0], "k", load)
		done <- err
	}()
	<-began
	if token, err := o.redis.HGet(t.Context(), o.prefix+":{k}:lease", "token").Result(); err != nil || strings.Contains(token, ".") {
		t.Errorf("the lease's token is %q, %v: it has an origin", token, err)
	}
	close(mayEnd)
	expect.ErrorIs(t, <-done, nil)
	expect.Equal(t, "spans", len(o.close()), 0)
}

func TestSpansOfManyKeysAreOnePerCall(t *testing.T) {
	t.Parallel()
	o := observe(t, 1, Config{Keys: true})
	values, err := cacheguard.GetMany(t.Context(), o.guards[0], []string{"a", "b", "c"}, func(_ context.Context, keys []string) (map[string]int, error) {
		return map[string]int{"a": 1, "b": 2}, nil
	})
	if err != nil || len(values) != 2 {
		t.Fatal(values, err)
	}
	spans := o.close()
	many, load := o.one(spans, "cacheguard.get_many"), o.one(spans, "cacheguard.load")
	expect.Equal(t, "spans", len(spans), 2)
	expect.Equal(t, "parent of the load", load.Parent.SpanID(), many.SpanContext.SpanID())
	expect.Equal(t, "keys of the call", has(many, keysKey), `["a","b","c"]`)
	expect.Equal(t, "number of keys of the load", has(load, countKey), "3")
}

func TestAnUpdateHasWhatItIsMadeOfWithinIt(t *testing.T) {
	t.Parallel()
	o := observe(t, 1, Config{})
	err := o.guards[0].Update(t.Context(), "k", func(ctx context.Context) error {
		_, span := o.telemetry.tracer.Start(ctx, "write")
		span.End()
		return o.guards[0].Invalidate(ctx, "other")
	})
	expect.ErrorIs(t, err, nil)
	spans := o.close()
	update := o.one(spans, "cacheguard.update")
	for _, name := range []string{"write", "cacheguard.invalidate"} {
		expect.Equal(t, "parent of "+name, o.one(spans, name).Parent.SpanID(), update.SpanContext.SpanID())
	}
}

func TestSpansAndMetricsNameNoKeyUnlessAsked(t *testing.T) {
	t.Parallel()
	const secret = "user:4711"
	for _, keys := range []bool{false, true} {
		o := observe(t, 1, Config{Keys: keys})
		_, err := cacheguard.Get(t.Context(), o.guards[0], secret, func(context.Context) (int, error) { return 1, nil })
		expect.ErrorIs(t, err, nil)
		expect.ErrorIs(t, o.guards[0].Invalidate(t.Context(), secret), nil)
		for _, span := range o.close() {
			found := false
			for _, a := range span.Attributes {
				found = found || strings.Contains(a.Value.String(), secret)
			}
			expect.Equal(t, span.Name+" names the key", found, keys)
		}
		for name := range o.counts() {
			if strings.Contains(name, secret) {
				t.Errorf("%s names the key", name)
			}
		}
	}
}

func TestAbsenceIsNoError(t *testing.T) {
	t.Parallel()
	o := observe(t, 1, Config{})
	_, err := cacheguard.Get(t.Context(), o.guards[0], "k", func(context.Context) (int, error) { return 0, cacheguard.ErrNotFound })
	expect.ErrorIs(t, err, cacheguard.ErrNotFound)
	for _, span := range o.close() {
		expect.Equal(t, "status of "+span.Name, span.Status.Code, codes.Unset)
	}
}

func TestOnlyWhatOriginMadeIsALink(t *testing.T) {
	t.Parallel()
	for _, forged := range []string{"", "x", strings.Repeat("x", originLen-1), strings.Repeat("x", originLen+1), strings.Repeat("\x00", originLen)} {
		if of, ok := loadOf(forged); ok {
			t.Errorf("%q is %v", forged, of)
		}
	}
	expect.Equal(t, "origin without a span", origin(t.Context()), "")
}

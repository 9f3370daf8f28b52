package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/cacheguard/go/mutex"
)

// Lock returns the Hooks of a Locker or Quorum of any package of locks, whose spans and metrics have the attribute cacheguard.lock=name. Reading
// and writing are counted together; spans tell them apart by cacheguard.call.
func (t *Telemetry) Lock(name string) mutex.Hooks {
	l := t.lock(name)
	return mutex.Hooks{Begin: l.begin, OnLock: l.locked, OnUnlock: l.unlocked}
}

// lock is what is observed of the locks of a Locker.
type lock struct {
	*Telemetry

	name      attribute.KeyValue
	counted   metric.MeasurementOption
	byOutcome map[string]metric.MeasurementOption
}

func (t *Telemetry) lock(name string) *lock {
	l := &lock{Telemetry: t, name: lockKey.String(text(name)), byOutcome: make(map[string]metric.MeasurementOption)}
	l.counted = metric.WithAttributeSet(attribute.NewSet(l.name))
	for _, outcome := range []string{"acquired", "refused", "error"} {
		l.byOutcome[outcome] = metric.WithAttributeSet(attribute.NewSet(l.name, outcomeKey.String(outcome)))
	}
	return l
}

func (l *lock) outcome(err error) string {
	switch {
	case err == nil:
		return "acquired"
	case errors.Is(err, mutex.ErrNotAcquired):
		return "refused"
	}
	return "error"
}

func (l *lock) begin(ctx context.Context, call, name string) func(error) {
	_, span := l.tracer.Start(ctx, "cacheguard.lock", trace.WithAttributes(l.name, callKey.String(call)))
	if l.keys {
		span.SetAttributes(nameKey.String(text(name)))
	}
	return func(err error) {
		outcome := l.outcome(err)
		span.SetAttributes(outcomeKey.String(outcome))
		if outcome == "error" {
			fail(span, errorType(err), err)
		}
		span.End()
	}
}

func (l *lock) locked(_ string, took time.Duration, err error) {
	l.lockWaits.Record(context.Background(), took.Seconds(), l.byOutcome[l.outcome(err)])
}

func (l *lock) unlocked(_ string, held time.Duration, err error) {
	l.lockHolds.Record(context.Background(), held.Seconds(), l.counted)
	if errors.Is(err, mutex.ErrLeaseLost) || errors.Is(err, mutex.ErrRevoked) {
		l.locksLost.Add(context.Background(), 1, l.counted)
	}
}

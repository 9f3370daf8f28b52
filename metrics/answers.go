package metrics

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
)

var outcomes = []cacheguard.Outcome{
	cacheguard.Hit, cacheguard.Local, cacheguard.Stale, cacheguard.Negative, cacheguard.Loaded, cacheguard.Shared,
	cacheguard.Bypassed,
}

// answers counts and times what Get, GetMany and Fetch return.
type answers struct {
	by                   map[cacheguard.Outcome]answer
	failed, missed, left answer
	traceID              func(context.Context) string // nil: there is none
}

// answer is those with one result.
type answer struct {
	count   prometheus.Counter
	took    prometheus.Observer
	avoided prometheus.Counter // a load; nil: not
}

func (m *Metrics) newAnswers(name string) *answers {
	of := func(result string) answer {
		return answer{count: m.requests.WithLabelValues(name, result), took: m.requestTime.WithLabelValues(name, m.timed(result))}
	}
	a := &answers{
		by: make(map[cacheguard.Outcome]answer), failed: of("error"), missed: of("missed"), left: of("left"), traceID: m.traceID,
	}
	for _, o := range outcomes {
		c := of(string(o))
		if o == cacheguard.Shared || o == cacheguard.Stale {
			c.avoided = m.avoided.WithLabelValues(name, string(o))
		}
		a.by[o] = c
	}
	return a
}

// timed returns the result under which the durations of a result are.
func (m *Metrics) timed(result string) string {
	if m.detailed {
		return result
	}
	switch result {
	case "hit", "local", "stale", "negative", "faulty": // no load
		return "hit"
	case "loaded", "shared", "bypassed", "passed", "refused": // as long as a loader or a handler took
		return "loaded"
	case "missed", "left": // no value
		return "error"
	}
	return result
}

func (a *answers) got(ctx context.Context, outcome cacheguard.Outcome, took time.Duration, err error) {
	c, is := a.by[outcome]
	switch {
	case is && (err == nil || errors.Is(err, cacheguard.ErrNotFound)):
	case errors.Is(err, cacheguard.ErrNotCached):
		c = a.missed
	case errors.Is(ctx.Err(), context.Canceled):
		c = a.left
	default:
		c = a.failed
	}
	c.count.Inc()
	if c.avoided != nil {
		c.avoided.Inc()
	}
	if a.traceID != nil {
		observe(c.took, took.Seconds(), a.traceID(ctx))
	} else {
		c.took.Observe(took.Seconds())
	}
}

// longestTraceID is how much of an exemplar's 128 characters the name leaves.
const longestTraceID = 128 - len("trace_id")

// observe observes with the trace's id as the exemplar. One that Prometheus would not take is left out.
func observe(o prometheus.Observer, seconds float64, traceID string) {
	with, can := o.(prometheus.ExemplarObserver)
	if !can || traceID == "" || len(traceID) > longestTraceID || !utf8.ValidString(traceID) {
		o.Observe(seconds)
		return
	}
	with.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": traceID})
}

package metrics

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
	"github.com/cacheguard/go/mutex"
)

// Guard returns an Observer of a Guard, whose metrics have the label cache=name. Calls through a Cache of the Guard have the
// Cache's name instead. Metrics about the whole Guard, which Watch reads, keep the Guard's name. Guards and
// Caches with the same name are counted together. The reads of a middleware.Cache are not among the requests: see HTTP.
func (m *Metrics) Guard(name string) cacheguard.Observer {
	return &counted{of: m, others: m.newInstruments(label(name))}
}

// Observe is part of cacheguard.Observer.
func (c *counted) Observe(ctx context.Context, e cacheguard.Event) {
	switch e.What {
	case cacheguard.EventCache:
		c.add(e.Kind)
	case cacheguard.EventGet:
		c.by(e.Key).got(ctx, e.Outcome, e.Took, e.Err)
	case cacheguard.EventJoin:
		c.by(e.Key).joins.Inc()
	case cacheguard.EventLoad:
		c.by(e.Key).loads[loadResult(e.Err)].Observe(e.Took.Seconds())
	case cacheguard.EventStale:
		c.by(e.Key).staleAge.Observe(e.Took.Seconds())
	case cacheguard.EventRejected:
		c.by(e.Key).overtaken.Inc()
	case cacheguard.EventUnstorable:
		c.by(e.Key).unstorable.Inc()
	case cacheguard.EventDamaged, cacheguard.EventUnread, cacheguard.EventAlien:
		c.by(e.Key).damaged.Inc()
	case cacheguard.EventLeaseLost:
		c.by(e.Key).lost.Inc()
	case cacheguard.EventTakeover:
		c.by(e.Key).takeovers.Inc()
	case cacheguard.EventRedisError:
		var failed *cacheguard.RedisError
		if errors.As(e.Err, &failed) {
			if op := c.by(failed.Key).ops[failed.Op]; op != nil {
				op.Inc()
			}
		}
	}
}

func loadResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, cacheguard.ErrNotFound):
		return "absent"
	case errors.Is(err, context.Canceled):
		return "abandoned"
	}
	return "error"
}

var results = []middleware.Result{
	middleware.Hit, middleware.Stale, middleware.Loaded, middleware.Shared, middleware.Bypassed, middleware.Passed,
	middleware.Failed, middleware.Faulty, middleware.Refused,
}

// other is the route of requests that are for none of Config.Routes.
const other = "other"

// HTTP returns a function for the Config.OnResponse of a middleware.Cache, whose metrics have the label
// cache=name.
func (m *Metrics) HTTP(name string) func(*http.Request, middleware.Response) {
	type series struct{ route, result string }
	name = label(name)
	count := make(map[series]prometheus.Counter)
	took := make(map[middleware.Result]prometheus.Observer)
	notStored := make(map[string]prometheus.Counter)
	for _, reason := range middleware.Reasons() {
		notStored[reason] = m.httpNotStored.WithLabelValues(name, reason)
	}
	for _, result := range results {
		took[result] = m.httpTime.WithLabelValues(name, m.timed(string(result)))
		for _, route := range append([]string{other}, m.routes...) {
			count[series{route, string(result)}] = m.http.WithLabelValues(name, route, string(result))
		}
	}
	return func(_ *http.Request, res middleware.Response) {
		if res.Result == middleware.Bypassed && res.NotStored != "" { // somebody wants that
			res.Result, res.NotStored = middleware.Passed, ""
		}
		c := count[series{res.Route, string(res.Result)}]
		if c == nil {
			c = count[series{other, string(res.Result)}]
		}
		c.Inc()
		took[res.Result].Observe(res.Took.Seconds())
		if res.Result != middleware.Passed || res.NotStored == "" {
			return
		}
		why := notStored[res.NotStored]
		if why == nil {
			why = notStored[middleware.OtherReason]
		}
		why.Inc()
	}
}

// Lock returns the Hooks of a Locker or Quorum of any package of locks, whose metrics have the label lock=name. Reading and writing are counted
// together.
func (m *Metrics) Lock(name string) mutex.Hooks {
	asked, unlocked := m.lock(name)
	return mutex.Hooks{OnLock: asked, OnUnlock: unlocked}
}

// lock returns the two hooks of a lock.
func (m *Metrics) lock(name string) (asked, unlocked func(string, time.Duration, error)) {
	name = label(name)
	acquired, notAcquired, failed := m.lockWait.WithLabelValues(name, "acquired"),
		m.lockWait.WithLabelValues(name, "refused"), m.lockWait.WithLabelValues(name, "error")
	hold := m.lockHold.WithLabelValues(name)
	lost, revoked := m.locksLost.WithLabelValues(name, "lost"), m.locksLost.WithLabelValues(name, "revoked")
	asked = func(_ string, took time.Duration, err error) {
		switch {
		case err == nil:
			acquired.Observe(took.Seconds())
		case errors.Is(err, mutex.ErrNotAcquired):
			notAcquired.Observe(took.Seconds())
		default:
			failed.Observe(took.Seconds())
		}
	}
	unlocked = func(_ string, held time.Duration, err error) {
		hold.Observe(held.Seconds())
		switch {
		case errors.Is(err, mutex.ErrRevoked):
			revoked.Inc()
		case errors.Is(err, mutex.ErrLeaseLost):
			lost.Inc()
		}
	}
	return asked, unlocked
}

package metrics

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
)

// ops are the operations of a RedisError.
var ops = []string{"get", "acquire", "fill", "fail", "invalidate", "update"}

var outcomes = []cacheguard.Outcome{
	cacheguard.Hit, cacheguard.Local, cacheguard.Stale, cacheguard.Negative, cacheguard.Loaded, cacheguard.Shared,
	cacheguard.Bypassed,
}

// instruments are those of one value of the label cache.
type instruments struct {
	outcomes map[cacheguard.Outcome]prometheus.Counter
	loads    map[string]prometheus.Observer
	ops      map[string]prometheus.Counter

	failed, missed, left, overtaken, unstorable, joins, damaged, lost, takeovers prometheus.Counter
	requestTime, staleAge                                                        prometheus.Observer
}

func (m *Metrics) newInstruments(name string) *instruments {
	i := &instruments{
		outcomes: make(map[cacheguard.Outcome]prometheus.Counter),
		loads:    make(map[string]prometheus.Observer), ops: make(map[string]prometheus.Counter),
		failed: m.requests.WithLabelValues(name, "error"), missed: m.requests.WithLabelValues(name, "missed"),
		left:      m.requests.WithLabelValues(name, "left"),
		overtaken: m.rejected.WithLabelValues(name, "overtaken"), unstorable: m.rejected.WithLabelValues(name, "unstorable"),
		joins: m.joins.WithLabelValues(name), damaged: m.damaged.WithLabelValues(name),
		lost: m.lost.WithLabelValues(name), takeovers: m.takeovers.WithLabelValues(name),
		requestTime: m.requestTime.WithLabelValues(name), staleAge: m.staleAge.WithLabelValues(name),
	}
	for _, o := range outcomes {
		i.outcomes[o] = m.requests.WithLabelValues(name, string(o))
	}
	for _, result := range []string{"ok", "absent", "abandoned", "error"} {
		i.loads[result] = m.loadTime.WithLabelValues(name, result)
	}
	for _, op := range ops {
		i.ops[op] = m.redisErrors.WithLabelValues(name, op)
	}
	return i
}

// got counts an answer.
func (i *instruments) got(ctx context.Context, outcome cacheguard.Outcome, took time.Duration, err error) {
	i.requestTime.Observe(took.Seconds())
	switch c := i.outcomes[outcome]; {
	case c != nil && (err == nil || errors.Is(err, cacheguard.ErrNotFound)):
		c.Inc()
	case errors.Is(err, cacheguard.ErrNotCached):
		i.missed.Inc()
	case errors.Is(ctx.Err(), context.Canceled):
		i.left.Inc()
	default:
		i.failed.Inc()
	}
}

// counted is a Guard whose Caches are counted apart.
type counted struct {
	of     *Metrics
	others *instruments // of keys of no Cache

	mu     sync.Mutex                              // for those that add
	caches atomic.Pointer[map[string]*instruments] // by name; replaced, not changed
}

// add has a Cache counted apart.
func (c *counted) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	caches := make(map[string]*instruments)
	if old := c.caches.Load(); old != nil {
		maps.Copy(caches, *old)
	}
	caches[name] = c.of.newInstruments(name)
	c.caches.Store(&caches)
}

// by returns the instruments for a key, which begins with the name of its Cache and a colon.
func (c *counted) by(key string) *instruments {
	if caches := c.caches.Load(); caches != nil {
		if name, _, found := strings.Cut(key, ":"); found {
			if i := (*caches)[name]; i != nil {
				return i
			}
		}
	}
	return c.others
}

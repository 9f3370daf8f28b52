package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// ops are the operations of a RedisError.
var ops = []string{"get", "acquire", "fill", "fail", "invalidate", "update"}

// instruments belong to one value of the label cache.
type instruments struct {
	*answers
	loads map[string]prometheus.Observer
	ops   map[string]prometheus.Counter

	overtaken, unstorable, joins, damaged, lost, takeovers prometheus.Counter
	staleAge                                               prometheus.Observer
}

func (m *Metrics) newInstruments(name string) *instruments {
	i := &instruments{
		answers: m.newAnswers(name),
		loads:   make(map[string]prometheus.Observer), ops: make(map[string]prometheus.Counter),
		overtaken: m.rejected.WithLabelValues(name, "overtaken"), unstorable: m.rejected.WithLabelValues(name, "unstorable"),
		joins: m.joins.WithLabelValues(name), damaged: m.damaged.WithLabelValues(name),
		lost: m.lost.WithLabelValues(name), takeovers: m.takeovers.WithLabelValues(name),
		staleAge: m.staleAge.WithLabelValues(name),
	}
	for _, result := range []string{"ok", "absent", "abandoned", "error"} {
		i.loads[result] = m.loadTime.WithLabelValues(name, result)
	}
	for _, op := range ops {
		i.ops[op] = m.redisErrors.WithLabelValues(name, op)
	}
	return i
}

// counted is a Guard whose Caches are counted apart.
type counted struct {
	of     *Metrics
	others *instruments // of keys of no Cache

	mu     sync.Mutex                              // held to add
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

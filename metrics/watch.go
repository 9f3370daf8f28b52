package metrics

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
)

// watchable is a Guard.
type watchable interface {
	Stats() cacheguard.Stats
	Verified() cacheguard.Verified
}

// watched are the guards that are asked when metrics are collected.
type watched struct {
	mu     sync.Mutex
	guards map[string]watchable
}

// Watch reads a Guard's Stats and Verified whenever metrics are collected. The name is the one given to Guard; a Guard
// watched under a name replaces the one before.
func (m *Metrics) Watch(name string, guard *cacheguard.Guard) {
	m.watched.mu.Lock()
	defer m.watched.mu.Unlock()
	m.watched.guards[name] = guard
}

// read is a metric that is read from Stats.
type read struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*cacheguard.Stats) float64
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

func gauge(name, help string, of func(*cacheguard.Stats) float64) read {
	return read{describe(name, help, "cache"), prometheus.GaugeValue, of}
}

func total(name, help string, of func(*cacheguard.Stats) float64) read {
	return read{describe(name+"_total", help, "cache"), prometheus.CounterValue, of}
}

var fromStats = []read{
	gauge("loads_in_flight", "Loaders that run.", func(s *cacheguard.Stats) float64 { return float64(s.Loading) }),
	gauge("loads_queued", "Loads that wait for one of MaxLoads.", func(s *cacheguard.Stats) float64 { return float64(s.Queued) }),
	gauge("loads_limit", "MaxLoads; 0: no limit.", func(s *cacheguard.Stats) float64 { return float64(s.MaxLoads) }),
	gauge("fleet_loads_queued", "Loads that wait for one of FleetLoads.", func(s *cacheguard.Stats) float64 { return float64(s.FleetQueued) }),
	gauge("fleet_loads_limit", "FleetLoads; 0: no limit.", func(s *cacheguard.Stats) float64 { return float64(s.FleetLoads) }),
	gauge("requests_waiting", "Requests that wait for a load, here or on another instance.",
		func(s *cacheguard.Stats) float64 { return float64(s.Waiting) }),
	gauge("pending_invalidations", "Keys and tags whose invalidation is still to be sent.",
		func(s *cacheguard.Stats) float64 { return float64(s.Pending) }),
	gauge("pending_invalidations_age_seconds", "Since when invalidations are pending.",
		func(s *cacheguard.Stats) float64 { return s.PendingFor.Seconds() }),
	gauge("refused_messages", "Messages to local tiers about invalidations that Redis does not let the process publish.",
		func(s *cacheguard.Stats) float64 { return float64(s.RefusedMessages) }),
	gauge("refused_messages_age_seconds", "Since when such messages are refused.",
		func(s *cacheguard.Stats) float64 { return s.RefusedMessagesFor.Seconds() }),
	gauge("intents", "Intents of transactions, and of updates, that are not done.", func(s *cacheguard.Stats) float64 { return float64(s.Intents) }),
	gauge("intent_oldest_seconds", "Since when the oldest of these intents stands.",
		func(s *cacheguard.Stats) float64 { return s.OldestIntent.Seconds() }),
	gauge("warming", "Calls of Warm under way.", func(s *cacheguard.Stats) float64 { return float64(s.Warming) }),
	total("failed_refreshes", "Loads in the background that failed.", func(s *cacheguard.Stats) float64 { return float64(s.FailedRefreshes) }),
	total("altered_values", "Values, of those looked at, that do not come back from the Codec as they were.",
		func(s *cacheguard.Stats) float64 { return float64(s.Altered) }),
	gauge("unknown_names", "Invalidated tags and keys of a kind that no load has had: mistyped ones, perhaps.",
		func(s *cacheguard.Stats) float64 { return float64(s.UnknownTags + s.UnknownKeys) }),
	total("shadow_hits", "Gets that the cache would have answered.", func(s *cacheguard.Stats) float64 { return float64(s.Shadowed.Hits) }),
	total("shadow_hit_seconds", "How long these would have taken, together.",
		func(s *cacheguard.Stats) float64 { return s.Shadowed.Took.Seconds() }),
	total("shadow_misses", "Gets that the cache would not have answered.", func(s *cacheguard.Stats) float64 { return float64(s.Shadowed.Missed) }),
	total("shadow_failures", "Gets that could not ask the cache.", func(s *cacheguard.Stats) float64 { return float64(s.Shadowed.Failed) }),
	total("shadow_differences", "Would-be hits that were not what the source had.",
		func(s *cacheguard.Stats) float64 { return float64(s.Shadowed.Differed) }),
	total("shadow_old_values", "How many of these were old and stayed so.", func(s *cacheguard.Stats) float64 { return float64(s.Shadowed.Old) }),
	gauge("slow_parts", "Parts of the keyspace in which Redis takes longer than the loads that it saves.",
		func(s *cacheguard.Stats) float64 { return float64(s.SlowParts) }),
	total("hedged_loads", "Loads beside a Redis that kept calls waiting.", func(s *cacheguard.Stats) float64 { return float64(s.Hedged) }),
	total("replaced", "Invalidated keys whose new value was put in place of the old one.", func(s *cacheguard.Stats) float64 { return float64(s.Replaced) }),
	total("not_replaced", "Invalidated keys that were not replaced, although their Cache replaces.", func(s *cacheguard.Stats) float64 { return float64(s.NotReplaced) }),
	total("hedges_won", "Calls that such a load answered.", func(s *cacheguard.Stats) float64 { return float64(s.HedgesWon) }),
	gauge("bypassed", "1 if the cache is bypassed.", func(s *cacheguard.Stats) float64 { return number(s.Bypassed) }),
	gauge("subscription_up", "1 if messages of other instances arrive, or none were needed yet.",
		func(s *cacheguard.Stats) float64 { return number(s.Subscribed) }),
	gauge("local_entries", "Entries in the local tier.", func(s *cacheguard.Stats) float64 { return float64(s.LocalEntries) }),
	gauge("local_bytes", "About what the entries in the local tier take.", func(s *cacheguard.Stats) float64 { return float64(s.LocalBytes) }),
	total("local_evictions", "Entries that gave way to others in the local tier.",
		func(s *cacheguard.Stats) float64 { return float64(s.LocalEvictions) }),
	total("read_bytes", "Bytes of entries that were read from Redis.", func(s *cacheguard.Stats) float64 { return float64(s.BytesRead) }),
	total("written_bytes", "Bytes of entries that loads stored in Redis.", func(s *cacheguard.Stats) float64 { return float64(s.BytesWritten) }),
}

var verified = describe("verified_total", "Hits that were compared with the source.", "cache", "result")

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Describe is part of prometheus.Collector.
func (w *watched) Describe(c chan<- *prometheus.Desc) {
	for _, r := range fromStats {
		c <- r.desc
	}
	c <- verified
}

// Collect is part of prometheus.Collector.
func (w *watched) Collect(c chan<- prometheus.Metric) {
	w.mu.Lock()
	guards := maps.Clone(w.guards)
	w.mu.Unlock()
	for name, guard := range guards {
		s, v := guard.Stats(), guard.Verified()
		for _, r := range fromStats {
			c <- prometheus.MustNewConstMetric(r.desc, r.kind, r.of(&s), name)
		}
		for result, n := range map[string]uint64{
			"matched": v.Matched, "stale": v.Stale, "superseded": v.Superseded, "failed": v.Failed,
		} {
			c <- prometheus.MustNewConstMetric(verified, prometheus.CounterValue, float64(n), name, result)
		}
	}
}

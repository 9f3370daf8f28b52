package metrics

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cdc"
)

// feeds are the feeds of package cdc that are asked when metrics are collected.
type feeds struct {
	mu  sync.Mutex
	all map[string]func() cdc.Stats
}

// Feed reads a feed's Stats whenever metrics are collected: feed.Stats of a feed of package cdc. The metrics have the label feed=name; a feed under a name
// replaces the one before.
func (m *Metrics) Feed(name string, stats func() cdc.Stats) {
	m.feeds.mu.Lock()
	defer m.feeds.mu.Unlock()
	m.feeds.all[label(name)] = stats
}

// fed is a metric that is read from Stats.
type fed struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*cdc.Stats) float64
}

func feedGauge(name, help string, of func(*cdc.Stats) float64) fed {
	return fed{describe("feed_"+name, help, "feed"), prometheus.GaugeValue, of}
}

func feedTotal(name, help string, of func(*cdc.Stats) uint64) fed {
	return fed{describe("feed_"+name+"_total", help, "feed"), prometheus.CounterValue, func(s *cdc.Stats) float64 { return float64(of(s)) }}
}

var fromFeeds = []fed{
	feedGauge("reading", "1 if this instance reads the log.", func(s *cdc.Stats) float64 { return number(s.Reading) }),
	feedGauge("failing", "1 if the feed is in trouble.", func(s *cdc.Stats) float64 { return number(s.Err != nil) }),
	feedGauge("behind_seconds", "How old a value in the cache can be, if this instance reads.",
		func(s *cdc.Stats) float64 { return s.Behind.Seconds() }),
	feedGauge("behind_bytes", "What of the log is not yet invalidated.", func(s *cdc.Stats) float64 { return float64(s.BehindBytes) }),
	feedGauge("retained_bytes", "What the database keeps of its log for the feed.", func(s *cdc.Stats) float64 { return float64(s.Retained) }),
	feedTotal("rows", "Rows of mapped tables that have changed.", func(s *cdc.Stats) uint64 { return s.Rows }),
	feedTotal("invalidations", "Keys and tags that were invalidated.", func(s *cdc.Stats) uint64 { return s.Invalidations }),
	feedGauge("held", "1 if a transaction that somebody has left open keeps the database from forgetting its log, although the feed is not behind.",
		func(s *cdc.Stats) float64 { return number(s.HeldBy != "") }),
	feedTotal("unmapped", "Rows whose keys were not known, so that kinds were invalidated whole.", func(s *cdc.Stats) uint64 { return s.Unmapped }),
	feedTotal("whole", "How often kinds were invalidated whole.", func(s *cdc.Stats) uint64 { return s.Whole }),
	feedTotal("reconnects", "How often reading ended with an error.", func(s *cdc.Stats) uint64 { return s.Reconnects }),
}

// Describe is part of prometheus.Collector.
func (f *feeds) Describe(c chan<- *prometheus.Desc) {
	for _, m := range fromFeeds {
		c <- m.desc
	}
}

// Collect is part of prometheus.Collector.
func (f *feeds) Collect(c chan<- prometheus.Metric) {
	f.mu.Lock()
	all := maps.Clone(f.all)
	f.mu.Unlock()
	for name, stats := range all {
		s := stats()
		for _, m := range fromFeeds {
			c <- prometheus.MustNewConstMetric(m.desc, m.kind, m.of(&s), name)
		}
	}
}

package otel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/cacheguard/go/cdc"
)

// feeds are the feeds of package cdc that are asked when metrics are collected.
type feeds struct {
	mu  sync.Mutex
	all map[string]func() cdc.Stats

	of []fed
}

// fed is a metric that is read from Stats.
type fed struct {
	instrument metric.Int64Observable
	seconds    metric.Float64Observable // instead, if it is a time
	value      func(*cdc.Stats) float64
}

// Feed reads a feed's Stats whenever metrics are collected: feed.Stats of a feed of package cdc. The metrics have the attribute cacheguard.feed=name; a feed
// under a name replaces the one before.
func (t *Telemetry) Feed(name string, stats func() cdc.Stats) {
	t.feeds.mu.Lock()
	defer t.feeds.mu.Unlock()
	if t.feeds.all == nil {
		t.feeds.all = make(map[string]func() cdc.Stats)
	}
	t.feeds.all[name] = stats
}

// make makes the instruments, and returns them for a callback.
func (f *feeds) make(m metric.Meter) (all []metric.Observable, err error) {
	gauge := func(name, unit, about string, value func(*cdc.Stats) float64) {
		g, failed := m.Int64ObservableGauge("cacheguard.feed."+name, metric.WithUnit(unit), metric.WithDescription(about))
		err = errors.Join(err, failed)
		f.of, all = append(f.of, fed{g, nil, value}), append(all, g)
	}
	total := func(name, unit, about string, value func(*cdc.Stats) uint64) {
		c, failed := m.Int64ObservableCounter("cacheguard.feed."+name, metric.WithUnit(unit), metric.WithDescription(about))
		err = errors.Join(err, failed)
		f.of, all = append(f.of, fed{c, nil, func(s *cdc.Stats) float64 { return float64(value(s)) }}), append(all, c)
	}
	behind, failed := m.Float64ObservableGauge("cacheguard.feed.behind", metric.WithUnit("s"),
		metric.WithDescription("How old a value in the cache can be, if this instance reads."))
	err = errors.Join(err, failed)
	f.of, all = append(f.of, fed{nil, behind, func(s *cdc.Stats) float64 { return s.Behind.Seconds() }}), append(all, behind)
	gauge("reading", "1", "1 if this instance reads the log.", func(s *cdc.Stats) float64 { return number(s.Reading) })
	gauge("failing", "1", "1 if the feed is in trouble.", func(s *cdc.Stats) float64 { return number(s.Err != nil) })
	gauge("behind.bytes", "By", "What of the log is not yet invalidated.", func(s *cdc.Stats) float64 { return float64(s.BehindBytes) })
	gauge("retained.bytes", "By", "What the database keeps of its log for the feed.", func(s *cdc.Stats) float64 { return float64(s.Retained) })
	total("rows", "{row}", "Rows of mapped tables that have changed.", func(s *cdc.Stats) uint64 { return s.Rows })
	total("invalidations", "{name}", "Keys and tags that were invalidated.", func(s *cdc.Stats) uint64 { return s.Invalidations })
	gauge("held", "1", "1 if a transaction that somebody has left open keeps the database from forgetting its log, although the feed is not behind.",
		func(s *cdc.Stats) float64 { return number(s.HeldBy != "") })
	total("unmapped", "{row}", "Rows whose keys were not known, so that kinds were invalidated whole.", func(s *cdc.Stats) uint64 { return s.Unmapped })
	total("whole", "{time}", "How often kinds were invalidated whole.", func(s *cdc.Stats) uint64 { return s.Whole })
	total("reconnects", "{time}", "How often reading ended with an error.", func(s *cdc.Stats) uint64 { return s.Reconnects })
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return all, nil
}

func (f *feeds) observe(_ context.Context, o metric.Observer) error {
	f.mu.Lock()
	all := maps.Clone(f.all)
	f.mu.Unlock()
	for name, stats := range all {
		s, feed := stats(), metric.WithAttributes(feedKey.String(name))
		for _, m := range f.of {
			if m.seconds != nil {
				o.ObserveFloat64(m.seconds, m.value(&s), feed)
				continue
			}
			o.ObserveInt64(m.instrument, int64(m.value(&s)), feed)
		}
	}
	return nil
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

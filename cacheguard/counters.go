package cacheguard

import (
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/run/count"
	"github.com/cacheguard/go/internal/watch"
	"github.com/cacheguard/go/internal/watch/observe"
)

// counts is what a Guard counts, and the list of all its numbers.
type counts struct {
	count.List

	warming   atomic.Int64   // calls of Warm
	slowParts atomic.Int64   // of the keyspace
	hedgesWon *atomic.Uint64 // calls that a load beside Redis answered, ever
	written   *atomic.Uint64 // bytes of entries that loads stored, ever
}

// countAll names what is counted of the Guard: what it is called, what it means, and what it is. Stats, metrics, the
// page of package admin and cacheguardctl read the list. Another number costs one call here, and Add on what Total
// returns where it happens.
func (g *Guard) countAll() {
	add := g.counts.Add
	whole := func(name, help string, value func() int) { add(name, help, func() float64 { return float64(value()) }) }
	since := func(name, help string, value func() time.Duration) {
		add(name, help, func() float64 { return value().Seconds() })
	}
	is := func(name, help string, value func() bool) {
		add(name, help, func() float64 { return map[bool]float64{true: 1}[value()] })
	}
	first := func(a, _ int) int { return a }
	second := func(_, b int) int { return b }

	whole("loads_in_flight", "Loaders that run.", func() int { return int(g.loaders.running.Load()) })
	whole("loads_queued", "Loads that wait for one of MaxLoads.", func() int { return first(g.loaders.limits.Waiting()) })
	whole("loads_limit", "MaxLoads; 0: no limit.", func() int { return max(g.cfg.MaxLoads, 0) })
	whole("limiter_queued", "Loads that wait for Config.Limiter.", func() int { return second(g.loaders.limits.Waiting()) })
	whole("requests_waiting", "Requests that wait for a load, here or on another instance.", func() int { return g.flights.Count(nil).Callers })
	whole("warming", "Calls of Warm under way.", func() int { return int(g.counts.warming.Load()) })
	add("failed_refreshes_total", "Loads in the background that failed.", func() float64 { return float64(g.journal.Times(watch.Unrefreshed)) })

	whole("pending_invalidations", "Keys and tags whose invalidation is still to be sent.", g.writes.Pending)
	since("pending_invalidations_age_seconds", "Since when invalidations are pending.", func() time.Duration { return g.journal.Lasts("pending") })
	whole("refused_messages", "Messages to local tiers about invalidations that Redis does not let the process publish.", func() int { return g.notices.Refused() })
	since("refused_messages_age_seconds", "Since when such messages are refused.", func() time.Duration { return g.journal.Lasts("mute") })
	whole("intents", "Intents of transactions, and of updates, that are not done.", func() int { n, _ := g.writes.Intents(); return n })
	since("intent_oldest_seconds", "Since when the oldest of these intents stands.", func() time.Duration {
		if n, oldest := g.writes.Intents(); n > 0 {
			return time.Since(oldest)
		}
		return 0
	})
	add("overdue_total", "Updates and intents that outlasted UpdateTimeout.", func() float64 { return float64(g.writes.Overdue.Load()) })
	add("unknown_names", "Invalidated tags and keys of a kind that no load has had: mistyped ones, perhaps.",
		func() float64 { return float64(g.journal.Tags.Count() + g.journal.Keys.Count()) })

	whole("breakers_open", "Circuit breakers that are open.", func() int { open, _ := g.countBreakers(); return open })
	whole("slow_parts", "Parts of the keyspace in which Redis takes longer than the loads that it saves.", func() int { _, slow := g.countBreakers(); return slow })
	add("hedged_loads_total", "Loads beside a Redis that kept calls waiting.", func() float64 { return float64(g.journal.Beside.Load()) })
	g.counts.hedgesWon = g.counts.Total("hedges_won_total", "Calls that such a load answered.")
	is("bypassed", "1 if the cache is bypassed.", g.off.Bypassed)
	is("subscription_up", "1 if messages of other instances arrive, or none were needed yet.",
		func() bool { return g.inbox.Up() && !g.local.Deaf() && !g.journal.MissesAgain() })

	local := func(name, help string, value func(*tier.Local) uint64) {
		add(name, help, func() float64 {
			if g.local == nil {
				return 0
			}
			return float64(value(g.local))
		})
	}
	local("local_entries", "Entries in the local tier.", func(l *tier.Local) uint64 { return uint64(l.Len()) })
	local("local_bytes", "About what the entries in the local tier take, with LocalConfig.MaxBytes.", func(l *tier.Local) uint64 { return l.Bytes() })
	local("local_evictions_total", "Entries that gave way to others in the local tier.", func(l *tier.Local) uint64 { return l.Evictions() })
	add("read_bytes_total", "Bytes of entries that were read from Redis.", func() float64 { return float64(g.link.BytesRead()) })
	g.counts.written = g.counts.Total("written_bytes_total", "Bytes of entries that loads stored in Redis.")
}

// kindCounts is what is counted of a Cache.
type kindCounts struct {
	count.List
	observe.Counts
}

// The words of kindCounts.
const (
	hits = iota
	misses
	loads
)

// countAll names what is counted of the kind.
func (k *kind) countAll(g *Guard) {
	c := new(kindCounts)
	total := func(word int, name, help string) {
		c.List.Add(name, help, func() float64 { return float64(c.Sum()[word]) })
	}
	total(hits, "hits_total", "Answers from Redis or the local tier, also stale ones and remembered absence.")
	total(misses, "misses_total", "Answers that took a load, also one of another call or instance.")
	total(loads, "loads_total", "Things that a loader was asked for.")
	c.List.Add("loads_in_flight", "Loaders that run.", func() float64 { return float64(k.watched.Running.Load()) })
	c.List.Add("pending_invalidations", "Keys whose invalidation is still to be sent.", func() float64 { return float64(g.writes.PendingOf(k.name + ":")) })
	k.counts = c
}

// answered counts an answer.
func (c *kindCounts) answered(how Outcome) {
	switch how {
	case Hit, Local, Stale, Negative:
		c.Counts.Add(hits)
	case Loaded, Shared, Bypassed:
		c.Counts.Add(misses)
	}
}

// countBreakers is how many circuit breakers are open, and how many of the others are slow.
func (g *Guard) countBreakers() (open, slow int) {
	for part := range g.breakers.Len() {
		switch b := g.breakers.Breaker(part); {
		case b.IsOpen():
			open++
		case b.IsSlow():
			slow++
		}
	}
	return open, slow
}

package cacheguard

import (
	"time"

	"github.com/cacheguard/go/internal/cache/report"
)

// Stats is what a Guard, or a Cache, is doing at the moment, and what it has done so far. For a Cache, only Loading and Pending are set.
type Stats struct {
	Loading  int // loaders that run
	MaxLoads int // how many may; 0: no limit
	Queued   int // loads that wait for one of MaxLoads

	FleetLoads  int // how many loaders may run in the fleet; 0: no limit
	FleetQueued int // loads that wait for one of FleetLoads

	Waiting int // calls that wait for a load, a slot or another instance
	Warming int // calls of Cache.Warm under way

	Pending    int           // keys and tags whose invalidation is pending, see Invalidate
	PendingFor time.Duration // since when some are

	RefusedMessages    int           // to local tiers, which Redis does not let this process publish: the values are gone, but others' tiers may have them until Local.TTL
	RefusedMessagesFor time.Duration // since when some are

	Intents      int           // of Guard.Intend, and of Update, UpdateMany and Put, that are not done
	OldestIntent time.Duration // since when the oldest of them stands

	FailedRefreshes uint64 // loads in the background that failed, so far; no caller had their errors

	Replaced, NotReplaced uint64 // invalidated keys, so far, that CacheConfig.Replace replaced, or could not: the next Get loads those. The log says why, or what is wrong with Redis

	Altered uint64 // values that the Guard checked, and that did not come back from the Codec as they were: see Codec

	UnknownTags, UnknownKeys uint64 // invalidated, so far, and of a kind that no load of this Guard has had, and no Cache has; through a feed: of none of its Guards

	Undeclared string // of which Caches the values are made of values of others, though no CacheConfig.MadeOf says so: "view of product, page of view"

	Breakers     int  // circuit breakers: one, or those of the parts of a cluster; a disabled Guard has none
	BreakersOpen int  // how many are open: Redis, or that part of it, is not asked
	SlowParts    int  // parts of the keyspace that are neither, and in which Redis takes longer than the loads that it saves
	Closed       bool // see Close

	Hedged, HedgesWon uint64 // loads beside Redis so far, and calls that one of them answered; see Config.HedgeAfter

	Shadowed Shadowed // see Config.Shadow

	Bypassed   bool // the cache is bypassed, see Bypass
	Subscribed bool // messages of other instances arrive, or none were needed yet; not while they may have been missed again and again, nor while a local tier that is used waits for an echo longer than MaxLag

	LocalEntries   int    // in the local tier
	LocalBytes     uint64 // their approximate size, with LocalConfig.MaxBytes; else 0
	LocalEvictions uint64 // entries that gave way to others, so far

	BytesRead, BytesWritten uint64 // of entries, from and to Redis, so far; those in messages do not count
}

// Stats returns what the Guard is doing, for metrics. The more loads are under way, the longer it takes, so do not call it
// for every request.
func (g *Guard) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	s := Stats{
		Loading: int(g.loaders.running.Load()), MaxLoads: max(g.cfg.MaxLoads, 0),
		Pending: g.writes.Pending(), RefusedMessages: g.notices.Refused(),
		Bypassed: g.off.Bypassed(), Subscribed: g.inbox.Up() && !g.local.Deaf() && !g.journal.MissesAgain(),
		FailedRefreshes: g.journal.Times(report.Unrefreshed), Altered: g.journal.Times(report.Altered) + g.journal.Times(report.AlteredAgain),
		UnknownTags: g.journal.Tags.Count(), UnknownKeys: g.journal.Keys.Count(),
		Undeclared: g.kinds.made.undeclared(), BytesRead: g.link.BytesRead(), BytesWritten: g.written.Load(),
	}
	s.PendingFor, s.RefusedMessagesFor = g.journal.PendingFor()
	s.Waiting = g.flights.Count(nil).Callers
	s.Breakers, s.BreakersOpen, s.SlowParts = g.countBreakers()
	s.Replaced, s.NotReplaced = g.replaced.Load(), g.journal.Times(report.Unreplaced)+g.journal.Times(report.Removed)+g.journal.Times(report.RemovedAgain)+g.journal.Times(report.Kept)
	s.Hedged, s.HedgesWon = g.journal.Beside(), g.hedgesWon.Load()
	s.Warming, s.Closed, s.Shadowed = int(g.warming.Load()), g.life.Ending.Err() != nil, g.shadowed.counts()
	s.FleetLoads = g.cfg.FleetLoads
	s.Queued, s.FleetQueued = g.loaders.limits.Waiting()
	if n, oldest := g.writes.Intents(); n > 0 {
		s.Intents, s.OldestIntent = n, time.Since(oldest)
	}
	if g.local != nil {
		s.LocalEntries, s.LocalBytes, s.LocalEvictions = g.local.Len(), g.local.Bytes(), g.local.Evictions()
	}
	return s
}

// countBreakers is how many circuit breakers there are, and are open, and how many of the others are slow.
func (g *Guard) countBreakers() (all, open, slow int) {
	if g.cfg.Disabled {
		return 0, 0, 0
	}
	for part := range g.breakers.Len() {
		switch b := g.breakers.Breaker(part); {
		case b.IsOpen():
			open++
		case b.IsSlow():
			slow++
		}
	}
	return g.breakers.Len(), open, slow
}

package cacheguard

import (
	"iter"
	"time"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/run/count"
)

// Stats is what a Guard, or a Cache, is doing, and has done so far; All has all numbers. For a Cache, only Loading and
// Pending are set, and All has hits_total, misses_total (answers that took a load) and loads_total too.
type Stats struct {
	Loading  int // loaders that run
	MaxLoads int // how many may; 0: no limit
	Queued   int // loads that wait for a slot
	Waiting  int
	Warming  int

	Pending    int           // keys and tags, see Invalidate
	PendingFor time.Duration // since when some are

	Intents      int           // of writes that are not done
	OldestIntent time.Duration // since when the oldest stands

	FailedRefreshes uint64 // loads in the background that failed, so far

	Redis string // where that is, for people, as in "10.0.0.1:6379, database 0"

	Breakers     int // circuit breakers: one, or six on a cluster
	BreakersOpen int // those that are open: their part of Redis is not asked
	SlowParts    int // other parts, in which Redis takes longer than the loads that it saves
	Closed       bool

	Bypassed   bool
	Subscribed bool // messages arrive (for a local tier, within MaxLag), or none were needed yet

	LocalEntries int

	BytesRead, BytesWritten uint64 // of entries, so far

	numbers *[]count.Number // nil: it has none
}

// Number is a number of a Guard.
type Number struct {
	// Name is what package metrics exports it as, without cacheguard_. It ends with _total if it only grows, and with
	// _seconds if it is a time. What is so is 1, else 0.
	Name string

	Help  string // what it is
	Value float64
}

// All are all numbers: those of the fields, and more.
func (s Stats) All() iter.Seq[Number] {
	return func(yield func(Number) bool) {
		for _, n := range s.listed() {
			if !yield(Number(n)) {
				return
			}
		}
	}
}

// Of is the number of the name, or 0.
func (s Stats) Of(name string) float64 {
	for _, n := range s.listed() {
		if n.Name == name {
			return n.Value
		}
	}
	return 0
}

func (s Stats) listed() []count.Number {
	if s.numbers == nil {
		return nil
	}
	return *s.numbers
}

// Stats returns what the Guard is doing: for metrics, not for every request.
func (g *Guard) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	all := g.counts.Read()
	s := Stats{numbers: &all, Redis: goredis.Where(g.rdb), Breakers: g.breakers.Len(), Closed: g.life.Ending.Err() != nil}
	whole := func(name string) int { return int(s.Of(name)) }
	since := func(name string) time.Duration { return time.Duration(s.Of(name) * float64(time.Second)) }
	s.Loading, s.MaxLoads, s.Queued = whole("loads_in_flight"), whole("loads_limit"), whole("loads_queued")
	s.Waiting, s.Warming, s.FailedRefreshes = whole("requests_waiting"), whole("warming"), uint64(s.Of("failed_refreshes_total"))
	s.Pending, s.PendingFor = whole("pending_invalidations"), since("pending_invalidations_age_seconds")
	s.Intents, s.OldestIntent = whole("intents"), since("intent_oldest_seconds")
	s.BreakersOpen, s.SlowParts = whole("breakers_open"), whole("slow_parts")
	s.Bypassed, s.Subscribed = s.Of("bypassed") > 0, s.Of("subscription_up") > 0
	s.LocalEntries, s.BytesRead, s.BytesWritten = whole("local_entries"), uint64(s.Of("read_bytes_total")), uint64(s.Of("written_bytes_total"))
	return s
}

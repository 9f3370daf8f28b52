package cacheguard

import (
	"iter"
	"time"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/run/count"
)

// Stats is what a Guard, or a Cache, is doing at the moment, and what it has done so far. The fields are what programs
// ask for most; All has all numbers. For a Cache, only Loading and Pending are set, and All has hits_total,
// misses_total (answers that took a load, here or elsewhere) and loads_total beside them.
type Stats struct {
	Loading  int // loaders that run
	MaxLoads int // how many may; 0: no limit
	Queued   int // loads that wait for one of MaxLoads
	Waiting  int // calls that wait for a load, a slot or another instance
	Warming  int // calls of Cache.Warm under way

	Pending    int           // keys and tags whose invalidation is pending, see Invalidate
	PendingFor time.Duration // since when some are

	Intents      int           // of Guard.Intend, and of Update, UpdateMany and Put, that are not done
	OldestIntent time.Duration // since when the oldest of them stands

	FailedRefreshes uint64 // loads in the background that failed, so far; no caller had their errors

	Redis string // where that is, as in "10.0.0.1:6379, database 0", for people; the engine in the process is "memory, database 0"

	Breakers     int  // circuit breakers: one, or those of the parts of a cluster
	BreakersOpen int  // how many are open: Redis, or that part of it, is not asked
	SlowParts    int  // parts of the keyspace that are neither, and in which Redis takes longer than the loads that it saves
	Closed       bool // see Close

	Bypassed   bool // the cache is bypassed, see Bypass
	Subscribed bool // messages of other instances arrive, or none were needed yet; not while they may have been missed again and again, nor while a local tier that is used waits for an echo longer than MaxLag

	LocalEntries int // in the local tier

	BytesRead, BytesWritten uint64 // of entries, from and to Redis, so far; those in messages do not count

	numbers *[]count.Number // nil: it has none
}

// Number is one of the numbers of a Guard, at a time.
type Number struct {
	// Name is what package metrics exports it as, without cacheguard_ in front. It ends with _total if the number only
	// grows, and with _seconds if it is a time. That something is so is 1, else 0.
	Name string

	Help  string // what it is
	Value float64
}

// All are all numbers of the Guard: those of the fields, and more.
func (s Stats) All() iter.Seq[Number] {
	return func(yield func(Number) bool) {
		for _, n := range s.listed() {
			if !yield(Number(n)) {
				return
			}
		}
	}
}

// Of is the number of the name; 0 if there is none.
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

// Stats returns what the Guard is doing, for metrics. The more loads are under way, the longer it takes, so do not call
// it for every request.
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

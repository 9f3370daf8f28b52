package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// state is what a page is told, four times a second.
type state struct {
	Time      int64            `json:"time"` // milliseconds, as all times here
	Settings  settings         `json:"settings"`
	Redis     flow             `json:"redis"`
	Fresh     int64            `json:"fresh"` // for how long the hot key still is
	Missing   bool             `json:"missing"`
	Expiries  int64            `json:"expiries"`
	Busy      int              `json:"busy"`
	Pool      int              `json:"pool"`
	Queued    int64            `json:"queued"`
	Latency   int64            `json:"latency"`
	Instances []doing          `json:"instances"`
	Queries   int              `json:"queries"` // in the last second
	Peak      int              `json:"peak"`    // the most queries at once since a setting, Redis or an instance changed
	Waiting   int              `json:"waiting"` // callers
	P99       float64          `json:"p99"`     // of the calls that ended in the last second, or still wait
	Hits      *float64         `json:"hits"`    // their share; nil when nobody had an answer
	Failed    int64            `json:"failed"`
	Outdated  int64            `json:"outdated"`
	Version   int64            `json:"version"`  // that the database has
	Answered  *int64           `json:"answered"` // the oldest that callers got in the last second; nil: none got any
	Episode   *episode         `json:"episode"`
	Costs     map[mode]episode `json:"costs"`
	Journal   []line           `json:"journal"`
}

// doing is what an instance is doing.
type doing struct {
	Name    string                       `json:"name"`
	State   string                       `json:"state"`
	Loading int                          `json:"loading"`
	Waiting int                          `json:"waiting"`
	Answers map[cacheguard.Outcome]int64 `json:"answers"`
}

func (l *lab) state(ctx context.Context, now time.Time) state {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := state{
		Time: now.UnixMilli(), Settings: l.settings, Redis: l.redis, Expiries: l.expiries,
		Busy: len(l.db.pool), Pool: cap(l.db.pool), Queued: l.db.queued.Load(),
		Latency: time.Duration(l.db.latency.Load()).Milliseconds(), Version: l.db.version.Load(),
	}
	left, err := l.admin.PTTL(ctx, entry(l.prefix())).Result()
	s.Missing = err != nil || left < 0
	if l.settings.Mode == modeGuard && l.settings.Stale {
		left -= staleFor
	}
	s.Fresh = max(left, 0).Milliseconds()
	l.ledger.fill(&s, now)
	for i := range l.instances {
		s.Instances = append(s.Instances, l.ledger.doing(l.instances[i].Load(), now))
	}
	return s
}

// fill adds what the ledger knows.
func (l *ledger) fill(s *state, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	past := now.Add(-time.Second)
	l.ended = slices.DeleteFunc(l.ended, func(e ending) bool { return e.at.Before(past) })
	l.queries = slices.DeleteFunc(l.queries, func(at time.Time) bool { return at.Before(past) })
	s.Queries, s.Peak, s.Waiting, s.Failed, s.Outdated = len(l.queries), l.peak, len(l.calls), l.failed, l.outdated
	s.Costs, s.Journal = maps.Clone(l.costs), slices.Clone(l.journal)
	if l.episode != nil {
		e := *l.episode
		s.Episode = &e
	}

	var took []time.Duration
	hits := 0.0
	for _, e := range l.ended {
		took = append(took, e.took)
		if e.hit {
			hits++
		}
		if s.Answered == nil || e.version < *s.Answered {
			s.Answered = &e.version
		}
	}
	if n := len(took); n > 0 {
		hits /= float64(n)
		s.Hits = &hits
	}
	for c := range l.calls {
		took = append(took, now.Sub(c.began))
	}
	if n := len(took); n > 0 {
		slices.Sort(took)
		s.P99 = millis(took[(n*99-1)/100])
	}
}

// doing looks at the callers to tell waiting from serving: one that has waited for so long does not wait for a read.
func (l *ledger) doing(in *instance, now time.Time) doing {
	const long = 50 * time.Millisecond
	l.mu.Lock()
	defer l.mu.Unlock()
	d := doing{Name: in.name, Loading: in.loading, Answers: maps.Clone(in.answers)}
	for c := range l.calls {
		if c.by == in && now.Sub(c.began) > long {
			d.Waiting++
		}
	}
	switch {
	case !in.alive():
		d.State = "killed"
	case in.loading > 0:
		d.State = "loading"
	case d.Waiting > 0:
		d.State = "waiting"
	default:
		d.State = "serving" // the page says idle when the answers do not become more
	}
	return d
}

// mode is what stands between the callers and the database.
type mode string

const (
	modeHand   mode = "hand"   // GET and SET
	modeFlight mode = "flight" // and singleflight in each instance
	modeGuard  mode = "guard"  // cacheguard
)

var names = map[mode]string{modeHand: "by hand", modeFlight: "singleflight", modeGuard: "cacheguard"}

// settings are what the page can change.
type settings struct {
	Mode    mode `json:"mode"`
	Callers int  `json:"callers"`
	TTL     int  `json:"ttl"`    // seconds
	Stale   bool `json:"stale"`  // of cacheguard: serve the old value while a new one is loaded
	Local   bool `json:"local"`  // of cacheguard: keep it in the memory of each instance
	Slow    bool `json:"slow"`   // the database
	Put     bool `json:"put"`    // of cacheguard: a write stores the new version, and callers need not load it
	Intend  bool `json:"intend"` // of cacheguard: for writes that commit later
	Feed    bool `json:"feed"`   // invalidates what somebody writes past the cache
	Late    int  `json:"late"`   // milliseconds by which Redis answers later
	Hedge   bool `json:"hedge"`  // of cacheguard: a call that Redis keeps waiting loads beside it
}

func (s settings) ttl() time.Duration { return time.Duration(s.TTL) * time.Second }

func (s settings) late() time.Duration { return time.Duration(s.Late) * time.Millisecond }

// check names the field that is wrong.
func (s settings) check() error {
	switch {
	case names[s.Mode] == "":
		return fmt.Errorf("mode: %q is none of hand, flight, guard", s.Mode)
	case s.Callers < 0 || s.Callers > 500:
		return fmt.Errorf("callers: %d is not between 0 and 500", s.Callers)
	case s.TTL < 1 || s.TTL > 3600:
		return fmt.Errorf("ttl: %d is not between 1 and 3600 seconds", s.TTL)
	case s.Late < 0 || s.Late > 1000:
		return fmt.Errorf("late: %d is not between 0 and 1000 ms", s.Late)
	}
	return nil
}

// lasting is the settings without what can change while instances run.
func (s settings) lasting() settings {
	s.Callers, s.Late, s.Slow, s.Feed, s.Intend = 0, 0, false, false, false
	return s
}

package tier

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

const (
	// grace is how long a missing notice is waited for.
	grace = time.Second

	// maxSources bounds the processes whose numbers are followed; if there are more, all are forgotten.
	maxSources = 10_000
)

// feed finds out whether notices are missing.
type feed struct {
	lost func() // called when some have not come in time

	gaps    atomic.Int64 // sources of which a notice is missing
	overdue atomic.Int64 // when one may be, by clock.Mono, while there are gaps

	mu      sync.Mutex
	since   time.Duration // when somebody began to listen, by clock.Mono
	sources map[string]*source
}

// source is what has been heard of one.
type source struct {
	from  uint64              // the first number that is followed
	next  uint64              // the first one not heard
	upTo  uint64              // the last one that there is known to be; before next: nothing is missing
	early map[uint64]struct{} // numbers beyond next that were heard
	since time.Duration       // when the gap was found, by clock.Mono
}

func (s *source) incomplete() bool { return s.upTo >= s.next }

// waiting reports whether a notice is missing. Whoever asks, by clock.Mono, gives up those that are overdue.
func (f *feed) waiting(now time.Duration) bool {
	return f.gaps.Load() > 0 && (now < time.Duration(f.overdue.Load()) || f.stillWaiting(now))
}

// hear notes the number of a notice. The first one of a source may have any: nobody knows what it sent before.
func (f *feed) hear(n Notice) {
	_ = f.waiting(clock.Mono()) // else what comes early would be kept for as long as nobody asks
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sources[n.Source]
	switch {
	case s == nil:
		f.addLocked(n.Source, n.Number).next++
	case n.Number == s.next:
		f.advanceLocked(s)
	case n.Number > s.next: // otherwise it was sent twice
		f.missLocked(s, n.Number)
		if s.early == nil {
			s.early = make(map[uint64]struct{})
		}
		s.early[n.Number] = struct{}{}
	}
}

// remind notes which notices a source has made lately. The first ones may have been missed although later ones were
// heard, unless they were made before anybody listened.
func (f *feed) remind(r repetition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, heardAll := f.sources[r.source], clock.Mono()-f.since > settled
	switch {
	case s == nil && !heardAll:
		return
	case s == nil:
		s = f.addLocked(r.source, r.first)
	case r.first < s.from && heardAll:
		f.lost()
		s.from = r.first
	}
	if r.last >= s.next {
		f.missLocked(s, r.last)
	}
}

// addLocked begins to follow a source from that number on.
func (f *feed) addLocked(name string, from uint64) *source {
	if len(f.sources) >= maxSources {
		f.lost() // what is missing now will not be missed
		f.forgetLocked()
	}
	s := &source{from: from, next: from}
	f.sources[name] = s
	return s
}

// missLocked notes that there are numbers up to that one which were not heard.
func (f *feed) missLocked(s *source, upTo uint64) {
	if !s.incomplete() {
		s.since = clock.Mono()
		if f.gaps.Add(1) == 1 {
			f.overdue.Store(int64(s.since + grace))
		}
	}
	s.upTo = max(s.upTo, upTo)
}

// advanceLocked takes over the next number, and those that came early. If another one is missing, that is a new gap.
func (f *feed) advanceLocked(s *source) {
	missed := s.incomplete()
	for heard := true; heard; _, heard = s.early[s.next] {
		delete(s.early, s.next)
		s.next++
	}
	switch {
	case s.incomplete():
		s.since = clock.Mono()
	case missed:
		f.gaps.Add(-1)
	}
}

// stillWaiting gives up waiting for notices that are overdue, and reports whether others are missing.
func (f *feed) stillWaiting(now time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := now + grace
	for _, s := range f.sources {
		switch {
		case !s.incomplete():
		case s.since+grace > now:
			next = min(next, s.since+grace)
		default:
			f.lost()
			s.next = s.upTo + 1
			clear(s.early)
			f.gaps.Add(-1) // served from again, but for what is void now
		}
	}
	f.overdue.Store(int64(next))
	return f.gaps.Load() > 0
}

// restart forgets all sources: what they sent while nobody listened is lost.
func (f *feed) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = clock.Mono()
	f.forgetLocked()
}

func (f *feed) forgetLocked() {
	f.sources = make(map[string]*source)
	f.gaps.Store(0)
}

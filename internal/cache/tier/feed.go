package tier

import (
	"sync"
	"sync/atomic"
	"time"
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

	gaps atomic.Int64 // sources of which a notice is missing

	mu      sync.Mutex
	closed  bool
	since   time.Time // when somebody began to listen
	sources map[string]*source
	timer   *time.Timer // runs while there are gaps
}

// source is what has been heard of one.
type source struct {
	from  uint64              // the first number that is followed
	next  uint64              // the first one not heard
	upTo  uint64              // the last one that there is known to be; before next: nothing is missing
	early map[uint64]struct{} // numbers beyond next that were heard
	since time.Time           // when the gap was found
}

func (s *source) incomplete() bool { return s.upTo >= s.next }

// waiting reports whether a notice is missing.
func (f *feed) waiting() bool { return f.gaps.Load() > 0 }

// hear notes the number of a notice. The first one of a source may have any: nobody knows what it sent before.
func (f *feed) hear(n Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sources[n.Source]
	switch {
	case f.closed:
		return
	case s == nil:
		f.addLocked(n.Source, n.Number).next++
		return
	case n.Number < s.next:
		return // sent twice
	case n.Number > s.next:
		f.missLocked(s, n.Number)
		if s.early == nil {
			s.early = make(map[uint64]struct{})
		}
		s.early[n.Number] = struct{}{}
		return
	}
	missed := s.incomplete()
	s.next++
	if missed {
		f.advanceLocked(s)
	}
}

// remind notes which notices a source has made lately. The first ones may have been missed although later ones were heard, unless they
// were made before anybody listened.
func (f *feed) remind(r repetition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, heardAll := f.sources[r.source], time.Since(f.since) > settled
	switch {
	case f.closed, s == nil && !heardAll:
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
		f.sources = nil
		f.gaps.Store(0)
	}
	if f.sources == nil {
		f.sources = make(map[string]*source)
	}
	s := &source{from: from, next: from}
	f.sources[name] = s
	return s
}

// missLocked notes that there are numbers up to that one which were not heard.
func (f *feed) missLocked(s *source, upTo uint64) {
	if !s.incomplete() {
		f.gaps.Add(1)
		s.since = time.Now()
		if f.timer == nil {
			f.timer = time.AfterFunc(grace, f.check) // owner: the feed; stop: close; it does not wait for anything
		}
	}
	s.upTo = max(s.upTo, upTo)
}

// advanceLocked takes over numbers that came early. If another one is missing, that is a new gap.
func (f *feed) advanceLocked(s *source) {
	s.since = time.Now()
	for range len(s.early) {
		if _, heard := s.early[s.next]; !heard {
			return
		}
		delete(s.early, s.next)
		s.next++
	}
	if !s.incomplete() {
		f.gaps.Add(-1)
	}
}

// check gives up waiting for notices that are overdue.
func (f *feed) check() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer = nil; f.closed {
		return
	}
	next := time.Duration(0)
	for _, s := range f.sources {
		if !s.incomplete() {
			continue
		}
		if left := grace - time.Since(s.since); left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		f.lost()
		s.next = s.upTo + 1
		clear(s.early)
		f.gaps.Add(-1) // served from again, but for what is void now
	}
	if next > 0 {
		f.timer = time.AfterFunc(next, f.check)
	}
}

// restart forgets all sources: what they sent while nobody listened is lost.
func (f *feed) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = time.Now()
	f.sources = nil
	f.gaps.Store(0)
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
}

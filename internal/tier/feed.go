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
	sources map[string]*source
	timer   *time.Timer // runs while there are gaps
}

// source is what has been heard of one.
type source struct {
	next  uint64              // the first number not heard
	early map[uint64]struct{} // numbers beyond it that were
	since time.Time           // when the gap was found
}

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
		f.addLocked(n)
		return
	case n.Number < s.next:
		return // sent twice
	case n.Number > s.next:
		f.openGapLocked(s, n.Number)
		return
	}
	s.next++
	if len(s.early) > 0 {
		f.advanceLocked(s)
	}
}

func (f *feed) addLocked(n Notice) {
	if len(f.sources) >= maxSources {
		f.lost() // what is missing now will not be missed
		f.sources = nil
		f.gaps.Store(0)
	}
	if f.sources == nil {
		f.sources = make(map[string]*source)
	}
	f.sources[n.Source] = &source{next: n.Number + 1}
}

func (f *feed) openGapLocked(s *source, number uint64) {
	if len(s.early) == 0 {
		f.gaps.Add(1)
		s.since = time.Now()
		s.early = make(map[uint64]struct{})
		if f.timer == nil {
			f.timer = time.AfterFunc(grace, f.check) // owner: the feed; stop: close; it does not wait for anything
		}
	}
	s.early[number] = struct{}{}
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
	f.gaps.Add(-1)
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
		if len(s.early) == 0 {
			continue
		}
		if left := grace - time.Since(s.since); left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		f.lost()
		for number := range s.early {
			s.next = max(s.next, number+1)
		}
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

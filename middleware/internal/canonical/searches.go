package canonical

import (
	"sync"
	"sync/atomic"
)

// Searches remembers what the responses of paths said last, in a bounded memory.
type Searches struct {
	any        atomic.Bool
	mu         sync.Mutex
	young, old map[string]*Search // by path
}

// maxSearches is how many paths are remembered, in each of two generations.
const maxSearches = 1 << 12

// Any reports whether a response has said anything.
func (s *Searches) Any() bool { return s.any.Load() }

// Of is what the responses of the location's path said; nil: nothing.
func (s *Searches) Of(location string) *Search {
	path := pathOf(location)
	s.mu.Lock()
	defer s.mu.Unlock()
	if said, found := s.young[path]; found {
		return said
	}
	return s.old[path]
}

// Learn notes what a response at the location said, and reports whether it will be known; nil: nothing.
func (s *Searches) Learn(location string, said *Search) bool {
	path := pathOf(location)
	if path == "" || said == nil && !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if said == nil {
		delete(s.young, path)
		delete(s.old, path)
		return false
	}
	if s.young == nil || len(s.young) >= maxSearches {
		s.young, s.old = make(map[string]*Search), s.young
	}
	s.young[path] = said
	s.any.Store(true)
	return true
}

package cacheguard

import "sync"

// saturation is an episode in which loads wait for a limit, and what it costs.
type saturation struct {
	episode

	counting sync.Mutex // waits begin and end one at a time, so that each counts for one episode
	queued   int64      // loads that had to wait, ever
	before   int64      // when the episode began
	waiting  int        // that do so now
}

// waits hears that a load has to wait.
func (s *saturation) waits(args ...any) {
	s.counting.Lock()
	defer s.counting.Unlock()
	if s.waiting++; s.waiting == 1 {
		s.before = s.queued
	}
	s.queued++
	s.begin(args...)
}

// waited hears that a load waits no more.
func (s *saturation) waited() {
	s.counting.Lock()
	defer s.counting.Unlock()
	if s.waiting--; s.waiting == 0 {
		s.end(func() []any { return []any{"loads_that_waited", s.queued - s.before} })
	}
}

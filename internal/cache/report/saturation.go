package report

import "sync"

// Saturation logs how long loads wait for a limit, and how many had to.
type Saturation struct {
	episode

	counting sync.Mutex // waits begin and end one at a time, so that each counts for one episode
	queued   int64      // loads that had to wait, ever
	before   int64      // when the episode began
	waiting  int        // that do so now
}

// Waits notes that a load has to wait. It is followed by one Waited.
func (s *Saturation) Waits(args ...any) {
	s.counting.Lock()
	defer s.counting.Unlock()
	if s.waiting++; s.waiting == 1 {
		s.before = s.queued
	}
	s.queued++
	s.begin(args...)
}

// Waited notes that a load waits no more.
func (s *Saturation) Waited() {
	s.counting.Lock()
	defer s.counting.Unlock()
	if s.waiting--; s.waiting == 0 {
		s.end(func() []any { return []any{"loads_that_waited", s.queued - s.before} })
	}
}

package watch

import (
	"sync"
	"sync/atomic"
)

// Saturation logs how long loads wait for a limit, and how many had to.
type Saturation struct {
	episode

	queued   atomic.Int64 // loads that had to wait, ever
	counting sync.Mutex   // waits begin and end one at a time, so that each counts for one episode
	waiting  int          // that do so now
}

// Waits notes that a load has to wait. It is followed by one Waited.
func (s *Saturation) Waits(args ...any) {
	s.counting.Lock()
	defer s.counting.Unlock()
	s.waiting++
	s.begin(args...)
	s.queued.Add(1)
}

// Waited notes that a load waits no more.
func (s *Saturation) Waited() {
	s.counting.Lock()
	defer s.counting.Unlock()
	if s.waiting--; s.waiting == 0 {
		s.end()
	}
}

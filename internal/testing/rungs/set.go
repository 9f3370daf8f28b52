package rungs

import "sync"

// Set starts rungs when they are first asked for. The zero value is ready to use.
type Set struct {
	mu  sync.Mutex
	all map[string]*attempt
}

type attempt struct {
	started *Started
	err     error
}

// Get is the started rung, or why it cannot be.
func (s *Set) Get(r Rung, redis string) (*Started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[string]*attempt)
	}
	a := s.all[r.Name]
	if a == nil {
		a = new(attempt)
		a.started, a.err = r.Start(redis)
		s.all[r.Name] = a
	}
	return a.started, a.err
}

// End ends what was started.
func (s *Set) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		if a.started != nil {
			a.started.End()
		}
	}
	s.all = nil
}

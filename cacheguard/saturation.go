package cacheguard

import "sync/atomic"

// saturation is an episode in which loads wait for a limit, and what it costs.
type saturation struct {
	episode

	queued  atomic.Int64 // loads that had to wait, ever
	before  atomic.Int64 // when the episode began
	waiting atomic.Int64 // that do so now
}

// waits hears that a load has to wait.
func (s *saturation) waits(args ...any) {
	s.waiting.Add(1)
	s.queued.Add(1)
	if !s.on() {
		s.before.Store(s.queued.Load() - 1)
	}
	s.begin(args...)
}

// waited hears that a load waits no more.
func (s *saturation) waited() {
	if s.waiting.Add(-1) == 0 {
		s.end(func() []any { return []any{"loads_that_waited", s.queued.Load() - s.before.Load()} })
	}
}

package cacheguard

import (
	"context"
	"slices"
	"sync"
)

// searched is how many of the loads that wait for a slot are compared when one is free. The search goes on where the
// last one ended, so a crowd is found among any number of others.
const searched = 256

// slots are the rights to run a loader: MaxLoads of them. One that becomes free goes, by turns, to the load that waits
// longest and to the one that most callers wait for: a hot key is not held up by ten thousand cold ones, nor they by hot
// ones for ever.
type slots struct {
	mu    sync.Mutex
	free  int
	queue []*queuedLoad // those who wait, first come first
	crowd bool          // whose turn it is
	next  int           // where the search goes on
}

// queuedLoad is a load that waits for a slot.
type queuedLoad struct {
	callers func() int    // how many wait for it
	granted chan struct{} // closed when it has its slot
}

func newSlots(n int) *slots { return &slots{free: n} }

func (s *slots) tryAcquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return false
	}
	s.free--
	return true
}

// acquire waits for a slot, and reports whether there was one before the context ended.
func (s *slots) acquire(ctx context.Context, callers func() int) bool {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return true
	}
	q := &queuedLoad{callers: callers, granted: make(chan struct{})}
	s.queue = append(s.queue, q)
	s.mu.Unlock()
	select {
	case <-q.granted:
		return true
	case <-ctx.Done():
		s.leave(q)
		return false
	}
}

func (s *slots) leave(q *queuedLoad) {
	s.mu.Lock()
	i := slices.Index(s.queue, q)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 { // it was granted at the last moment
		s.release()
	}
}

func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.free++
		return
	}
	i := 0
	if s.crowd = !s.crowd; s.crowd {
		i = s.mostWantedLocked()
	}
	close(s.queue[i].granted)
	s.queue = slices.Delete(s.queue, i, i+1)
}

// mostWantedLocked is the load with the most callers of those that are searched now, and of equals the oldest.
func (s *slots) mostWantedLocked() int {
	best, most := 0, -1
	for range min(searched, len(s.queue)) {
		if s.next >= len(s.queue) {
			s.next = 0
		}
		if n := s.queue[s.next].callers(); n > most || n == most && s.next < best {
			best, most = s.next, n
		}
		s.next++
	}
	if best < s.next {
		s.next-- // it is taken out
	}
	return best
}

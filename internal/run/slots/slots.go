// Package slots is a semaphore that serves a crowd without starving the others: free slots go in turn to the load that
// has waited longest, and to the one with the most waiting callers.
package slots

import (
	"context"
	"slices"
	"sync"
)

// Searched is how many of the loads that wait for a slot are compared when one is free. The search goes on where the
// last one ended, so a crowd is found among any number of others.
const Searched = 256

// Slots are the rights to run a load. Ten thousand cold keys do not hold up a hot one, and hot keys do not hold up the
// cold ones for ever. It is safe for concurrent use.
type Slots struct {
	mu    sync.Mutex
	free  int
	queue []*queuedLoad // first come first
	crowd bool          // the last free slot went to the load with the most callers
	next  int           // where the search goes on
}

// queuedLoad is a load that waits for a slot.
type queuedLoad struct {
	callers func() int    // how many wait for it
	granted chan struct{} // closed when it has its slot
}

// New returns n slots.
func New(n int) *Slots { return &Slots{free: n} }

// TryAcquire takes a slot if one is free, and reports whether it did.
func (s *Slots) TryAcquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return false
	}
	s.free--
	return true
}

// Acquire waits for a slot, and reports whether there was one before the context ended. Callers tells how many wait for
// the load; it is called under the mutex, and must not block.
func (s *Slots) Acquire(ctx context.Context, callers func() int) bool {
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

func (s *Slots) leave(q *queuedLoad) {
	s.mu.Lock()
	i := slices.Index(s.queue, q)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 { // it was granted at the last moment
		s.Release()
	}
}

// Release gives a slot back, or hands it to a load that waits.
func (s *Slots) Release() {
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

// mostWantedLocked is the load with the most callers of the Searched first ones, and of equals the oldest.
func (s *Slots) mostWantedLocked() int {
	best, most := 0, -1
	for range min(Searched, len(s.queue)) {
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

// Unused is how many slots are free.
func (s *Slots) Unused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// Waiting is how many loads wait for a slot.
func (s *Slots) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

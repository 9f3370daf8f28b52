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

// backlog is trouble that lasts while something waits to be sent.
type backlog struct {
	episode
	what  string // waits
	count func() int

	counting sync.Mutex // one goroutine at a time counts: an old count must not end what has begun since
	most     int        // since some wait
}

// changed notes that another one waits, which has the name; empty: that there may be fewer.
func (b *backlog) changed(of, name string) {
	b.counting.Lock()
	defer b.counting.Unlock()
	n := b.count()
	b.most = max(b.most, n)
	if name != "" {
		b.begin(b.what, n, of, name)
	}
	if n == 0 {
		b.end(b.what, b.most)
		b.most = 0
	}
}

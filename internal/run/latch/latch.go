// Package latch tells those who wait for something that it has happened, and before that, once, that it is late: so
// that they may do something else meanwhile. As long as nothing is late, that costs no more than a channel that is
// closed.
package latch

import "sync"

// Latch is something that will happen once. Make makes it ready.
type Latch struct {
	early chan struct{} // closed when it is late, or done

	mu   sync.Mutex
	rest chan struct{} // made when it is late, before early is closed, and closed when it is done
	done bool
}

// Make is called before anything else.
func (l *Latch) Make() { l.early = make(chan struct{}) }

// Late says that it takes long, unless it is done. It may be called more than once.
func (l *Latch) Late() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done && l.rest == nil {
		l.rest = make(chan struct{})
		close(l.early)
	}
}

// Done says that it has happened. It is called once.
func (l *Latch) Done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = true
	if l.rest != nil {
		close(l.rest)
	} else {
		close(l.early)
	}
}

// Early is closed when it is late, or done.
func (l *Latch) Early() <-chan struct{} { return l.early }

// IsDone reports whether it has happened.
func (l *Latch) IsDone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// After is closed when it is done; nil: it was never late, and is done. It is called when Early is closed, since when
// it does not change.
func (l *Latch) After() <-chan struct{} { return l.rest }

package clock

import (
	"sync"
	"time"
)

// Manual is a clock that stands still until Advance moves it. It is safe for concurrent use.
type Manual struct {
	mu     sync.Mutex
	now    time.Time
	alarms map[*alarm]struct{}
}

type alarm struct {
	at   time.Time
	over chan time.Time // of size 1: nobody may be waiting any more
}

// NewManual returns a clock that shows the time.
func NewManual(now time.Time) *Manual {
	return &Manual{now: now, alarms: make(map[*alarm]struct{})}
}

// Clock is m for the code that goes by it.
func (m *Manual) Clock() Clock { return Clock{manual: m} }

// Now is the time that it shows.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock, and lets those go whose time is over.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	for a := range m.alarms {
		if !a.at.After(m.now) {
			a.over <- m.now
			delete(m.alarms, a)
		}
	}
}

// Waiting is how many wait for a time.
func (m *Manual) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.alarms)
}

func (m *Manual) after(d time.Duration) (over <-chan time.Time, stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := &alarm{at: m.now.Add(d), over: make(chan time.Time, 1)}
	if d <= 0 {
		a.over <- m.now
		return a.over, func() {}
	}
	m.alarms[a] = struct{}{}
	return a.over, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.alarms, a)
	}
}

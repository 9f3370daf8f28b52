// Package manual has a clock that only a test moves.
package manual

import (
	"sync"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

// Clock stands still until Advance moves it. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	alarms map[*alarm]struct{}
}

type alarm struct {
	at   time.Time
	over chan time.Time // of size 1: nobody may be waiting any more
}

// New returns a clock that shows the time.
func New(now time.Time) *Clock {
	return &Clock{now: now, alarms: make(map[*alarm]struct{})}
}

// Clock is m for the code that goes by it.
func (m *Clock) Clock() clock.Clock { return clock.By(m) }

// Now is the time that it shows.
func (m *Clock) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock, and lets those go whose time is over.
func (m *Clock) Advance(d time.Duration) {
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
func (m *Clock) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.alarms)
}

// After is a channel that receives when the clock has been moved by d. The caller calls stop when it does not wait any more.
func (m *Clock) After(d time.Duration) (over <-chan time.Time, stop func()) {
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

package main

import (
	"sync"
	"time"
)

// ledger knows which updates have returned, and judges reads by that. It stands outside of shops, caches and database.
type ledger struct {
	mu       sync.Mutex
	returned map[int]update // by product, the highest

	reads, updates []time.Duration // how long they took
	stale          int             // reads that began after an update had returned, and returned an older price
	longest        time.Duration   // from the return of an update to the beginning of a read that did not see it
}

type update struct {
	cents int64
	at    time.Time
}

func newLedger() *ledger { return &ledger{returned: make(map[int]update)} }

// updated notes that an update which began at start has returned.
func (l *ledger) updated(id int, cents int64, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.updates = append(l.updates, now.Sub(start))
	if cents > l.returned[id].cents {
		l.returned[id] = update{cents, now}
	}
}

// reading notes that a read begins, and returns the func to call with what it returned.
func (l *ledger) reading(id int) func(cents int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	newest, start := l.returned[id], time.Now()
	return func(cents int64) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reads = append(l.reads, time.Since(start))
		if cents < newest.cents {
			l.stale++
			l.longest = max(l.longest, start.Sub(newest.at))
		}
	}
}

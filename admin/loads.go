package admin

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	mostSlow    = 16              // how many loads are remembered
	remember    = 5 * time.Minute // for so long at least, and for twice as long at most
	mostRunning = 32
)

// loaderRun is a run of a loader.
type loaderRun struct {
	Key    string // of many, the first; its beginning if it is long
	Cut    bool   // there is more of the key
	Keys   int    // how many the run is for
	Began  time.Time
	Took   time.Duration // until now, of one that runs
	Failed bool
}

// loads knows the loads that run, and the slowest of the last minutes. Its memory is bounded by the loads that run. The zero loads is
// ready.
type loads struct {
	mu      sync.Mutex
	running map[*loaderRun]struct{}
	slow    [2][]loaderRun // of this span, and of the one before; the slowest first
	ends    time.Time      // of this span
}

// begin says that a load begins. It is followed by one end.
func (l *loads) begin(key string, keys int) *loaderRun {
	load := &loaderRun{Key: key, Keys: keys, Began: time.Now()}
	if len(key) > longestShown {
		load.Key, load.Cut = string([]byte(key[:longestShown])), true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = make(map[*loaderRun]struct{})
	}
	l.running[load] = struct{}{}
	return load
}

// end says how the load ended.
func (l *loads) end(load *loaderRun, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, load)
	now := time.Now()
	load.Took, load.Failed = now.Sub(load.Began), failed
	l.turnLocked(now)
	l.slow[0] = eachOnce(append(l.slow[0], *load), mostSlow)
}

// turnLocked begins the next span when it is time.
func (l *loads) turnLocked(now time.Time) {
	if now.Before(l.ends) {
		return
	}
	before := l.slow[0]
	if now.After(l.ends.Add(remember)) {
		before = nil // and the span after it was empty
	}
	l.slow, l.ends = [2][]loaderRun{nil, before}, now.Add(remember)
}

// longest are loads that run, the longest first.
func (l *loads) longest() (longest []loaderRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for load := range l.running {
		shown := *load
		shown.Took = now.Sub(load.Began)
		longest = append(longest, shown)
	}
	sortLongest(longest)
	return longest[:min(mostRunning, len(longest))]
}

// slowest are the slowest loads of the last minutes, each key once.
func (l *loads) slowest() []loaderRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnLocked(time.Now())
	return eachOnce(slices.Concat(l.slow[0], l.slow[1]), mostSlow)
}

// eachOnce are the n slowest, each key once.
func eachOnce(loads []loaderRun, n int) []loaderRun {
	sortLongest(loads)
	seen := make(map[string]bool, len(loads))
	loads = slices.DeleteFunc(loads, func(l loaderRun) bool {
		before := seen[l.Key]
		seen[l.Key] = true
		return before
	})
	return loads[:min(n, len(loads))]
}

func sortLongest(loads []loaderRun) {
	slices.SortStableFunc(loads, func(a, b loaderRun) int { return cmp.Compare(b.Took, a.Took) })
}

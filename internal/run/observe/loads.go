package observe

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	slowest   = 16              // how many loads are remembered
	remember  = 5 * time.Minute // for so long at least, and for twice as long at most
	shownKey  = 512             // bytes of a key that are remembered
	mostShown = 32
)

// Load is a run of a loader.
type Load struct {
	Key    string // of many, the first; its beginning if it is long
	Cut    bool   // there is more of the key
	Keys   int    // how many the run is for
	Began  time.Time
	Took   time.Duration // until now, of one that runs
	Failed bool
}

// Loads knows the loads that run, and the slowest of the last minutes. Its memory is bounded by the loads that run. The zero Loads is
// ready.
type Loads struct {
	mu      sync.Mutex
	running map[*Load]struct{}
	slow    [2][]Load // of this span, and of the one before; the slowest first
	ends    time.Time // of this span
}

// Begin says that a load begins. It is followed by one End.
func (l *Loads) Begin(key string, keys int) *Load {
	load := &Load{Key: key, Keys: keys, Began: time.Now()}
	if len(key) > shownKey {
		load.Key, load.Cut = string([]byte(key[:shownKey])), true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = make(map[*Load]struct{})
	}
	l.running[load] = struct{}{}
	return load
}

// End says how the load ended.
func (l *Loads) End(load *Load, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, load)
	now := time.Now()
	load.Took, load.Failed = now.Sub(load.Began), failed
	l.turnLocked(now)
	l.slow[0] = kept(append(l.slow[0], *load), slowest)
}

// turnLocked begins the next span when it is time.
func (l *Loads) turnLocked(now time.Time) {
	if now.Before(l.ends) {
		return
	}
	before := l.slow[0]
	if now.After(l.ends.Add(remember)) {
		before = nil // and the span after it was empty
	}
	l.slow, l.ends = [2][]Load{nil, before}, now.Add(remember)
}

// Running are loads that run, the longest first, and how many there are.
func (l *Loads) Running() (longest []Load, all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for load := range l.running {
		shown := *load
		shown.Took = now.Sub(load.Began)
		longest = append(longest, shown)
	}
	all = len(longest)
	sorted(longest)
	return longest[:min(all, mostShown)], all
}

// Slowest are the slowest loads of the last minutes, each key once.
func (l *Loads) Slowest() []Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnLocked(time.Now())
	return kept(slices.Concat(l.slow[0], l.slow[1]), slowest)
}

// kept are the n slowest, each key once.
func kept(loads []Load, n int) []Load {
	sorted(loads)
	seen := make(map[string]bool, len(loads))
	loads = slices.DeleteFunc(loads, func(l Load) bool {
		before := seen[l.Key]
		seen[l.Key] = true
		return before
	})
	return loads[:min(n, len(loads))]
}

func sorted(loads []Load) {
	slices.SortStableFunc(loads, func(a, b Load) int { return cmp.Compare(b.Took, a.Took) })
}

// Package guess has what a Guard guesses from what it has seen so far.
package guess

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	oneLoad = 8           // by how much a load changes the average
	afterOf = time.Second // how long nothing is loaded beside Redis after such a load has failed
)

// Cost is what the loads of a kind take, on average, where recent ones count more.
type Cost struct {
	took   atomic.Int64 // 0: nothing is known
	failed atomic.Int64 // when a load beside Redis failed last
}

// Took notes a load. Updates lost in a race do not matter.
func (c *Cost) Took(took time.Duration) {
	was := time.Duration(c.took.Load())
	if was == 0 {
		was = took
	}
	c.took.Store(int64(max(was+(took-was)/oneLoad, 1)))
}

// Read notes what an entry says that its load took, as long as nothing else is known.
func (c *Cost) Read(took time.Duration) {
	if c.took.Load() == 0 {
		c.Took(took)
	}
}

// Average is 0 if nothing is known.
func (c *Cost) Average() time.Duration { return time.Duration(c.took.Load()) }

// Failed notes that a load beside Redis has failed.
func (c *Cost) Failed(now time.Time) { c.failed.Store(now.UnixNano()) }

// Worth reports whether to load rather than to wait for that long.
func (c *Cost) Worth(now time.Time, wait time.Duration) bool {
	return c.Average() < wait && now.UnixNano()-c.failed.Load() > int64(afterOf)
}

// FirstYield is how old an entry has to be at first.
const FirstYield = time.Minute

const maxYield = time.Hour

// Aliens decides what to do with an entry of a Cache that is intact but that this program cannot decode: another
// version of the program, which may be running, stored it. If each version replaced the other's entries, both would
// keep loading the key, in turns. So a young entry stays, and the program loads without storing. Only an old entry,
// which may be left over from a version that is gone, is replaced. If the other version then stores again, and so is
// still running, the next entry must be twice as old, up to an hour.
type Aliens struct {
	mu       sync.Mutex
	yield    time.Duration // how old an entry has to be; 0: FirstYield
	replaced time.Time     // when this program first did so since yield was set; zero: not yet
}

// MayReplace reports whether an entry of that age may be replaced.
func (a *Aliens) MayReplace(age time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case a.yield == 0:
		a.yield = FirstYield
	case !a.replaced.IsZero() && now.Add(-age).After(a.replaced):
		a.yield, a.replaced = min(2*a.yield, maxYield), time.Time{}
	}
	if age < a.yield {
		return false
	}
	if a.replaced.IsZero() {
		a.replaced = now
	}
	return true
}

// Misses guesses from the last Gets whether the next one will miss. If so, it asks for the value and the lease at
// once, instead of reading first. That saves a round trip in a cold start, and for kinds that are seldom found. A wrong
// guess costs Redis a script instead of a GET.
type Misses struct {
	misses atomic.Int32 // the share of misses, in parts of whole; recent Gets count more
}

const (
	whole     = 1 << 10
	oneOf     = 16            // by how much a Get changes the share
	mostlyAre = whole * 3 / 4 // reached after some twenty misses in a row, and left after a few hits
)

// Expected reports whether the next Get will probably miss.
func (e *Misses) Expected() bool { return e.misses.Load() >= mostlyAre }

// Found notes what a Get found. While all are hits, it writes nothing. Updates lost in a race do not matter.
func (e *Misses) Found(value bool) {
	share := e.misses.Load()
	switch {
	case !value:
		e.misses.Store(share + (whole-share+oneOf-1)/oneOf)
	case share > 0:
		e.misses.Store(share - (share+oneOf-1)/oneOf)
	}
}

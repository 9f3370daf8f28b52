// Package guess has what a Guard guesses from what it has seen so far.
package guess

import "sync/atomic"

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

package cacheguard

import "sync/atomic"

// expected guesses from the last Gets whether the next one will miss. If so, it asks for the value and the lease at
// once, instead of reading first. That saves a round trip in a cold start, and for kinds that are seldom found. A wrong
// guess costs Redis a script instead of a GET.
type expected struct {
	misses atomic.Int32 // the share of misses, in parts of whole; recent Gets count more
}

const (
	whole     = 1 << 10
	oneOf     = 16            // by how much a Get changes the share
	mostlyAre = whole * 3 / 4 // reached after some twenty misses in a row, and left after a few hits
)

func (e *expected) miss() bool { return e.misses.Load() >= mostlyAre }

// found notes what a Get found. While all are hits, it writes nothing. Updates lost in a race do not matter.
func (e *expected) found(value bool) {
	share := e.misses.Load()
	switch {
	case !value:
		e.misses.Store(share + (whole-share+oneOf-1)/oneOf)
	case share > 0:
		e.misses.Store(share - (share+oneOf-1)/oneOf)
	}
}

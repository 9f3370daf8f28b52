package cacheguard

import "sync/atomic"

// expected says whether the next Get will probably miss, by what the last ones found: then it asks for the value and the
// lease at once, instead of reading first. That saves a round trip where a kind is seldom found, and in a cold start. A
// wrong guess costs Redis a script instead of a GET.
type expected struct {
	misses atomic.Int32 // the share of misses, in parts of whole; recent Gets count more
}

const (
	whole     = 1 << 10
	oneOf     = 16            // by how much a Get changes the share
	mostlyAre = whole * 3 / 4 // reached after some twenty misses in a row, and left after a few hits
)

func (e *expected) miss() bool { return e.misses.Load() >= mostlyAre }

// found notes what a Get found. Where all are hits, nothing is written. Updates that are lost in a race do not matter.
func (e *expected) found(value bool) {
	share := e.misses.Load()
	switch {
	case !value:
		e.misses.Store(share + (whole-share+oneOf-1)/oneOf)
	case share > 0:
		e.misses.Store(share - (share+oneOf-1)/oneOf)
	}
}

package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/flight"
)

// slot is the right to run a loader.
type slot int

const (
	noSlot  slot = iota
	ofOther      // that of another load, of which this one is a part; or there is no limit
	ofOwn        // one of MaxLoads
)

// borrows reports whether a load needs no slot of its own. A load that a loader asked for is a part of that loader's: if
// it needed a slot, loaders that hold all the slots could wait for each other's. The keys of a GetMany share one.
func (g *Guard) borrows(j *job) bool {
	return g.slots == nil || j.nested || j.unlimited || j.batch != nil && j.batch.covers(j.key)
}

// trySlot takes a slot if there is one.
func (g *Guard) trySlot(j *job) slot {
	switch {
	case g.borrows(j):
		return ofOther
	case g.slots.TryAcquire():
		return ofOwn
	}
	return noSlot
}

// takeSlot waits for a slot. The context is that of the flight that wants to load, or of the caller of a GetMany.
func (g *Guard) takeSlot(ctx context.Context, j *job) (slot, error) {
	if g.borrows(j) {
		return ofOther, nil
	}
	if !g.slots.Acquire(ctx, flight.CallersOf(ctx)) {
		return noSlot, closedOr(context.Cause(ctx))
	}
	return ofOwn, nil
}

func (g *Guard) freeSlot(s slot) {
	if s == ofOwn {
		g.slots.Release()
	}
}

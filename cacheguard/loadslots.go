package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/flight"
	"github.com/cacheguard/go/internal/slots"
)

// loadSlot is the right to run a loader.
type loadSlot struct {
	right
	kind   *slots.Slots // those of the Cache, if the load takes one of them too
	permit *permit      // of FleetLoads, if that is on
}

// right says whose a slot is.
type right int

const (
	noSlot  right = iota
	ofOther       // that of another load, which this one is part of; or there is no limit
	ofOwn         // one of MaxLoads
)

// borrows reports whether a load needs no slot of its own. A load that a loader asked for shares that loader's slot: if it
// needed one, loaders that hold all the slots could wait for each other. The keys of a GetMany share one slot.
func (l *loaders) borrows(j *job) bool {
	unbounded := l.loadSlots == nil && l.fleet == nil && j.policy.loadSlots() == nil
	return unbounded || j.scope.nested || j.unlimited || j.batch != nil && j.batch.covers(j.key)
}

// trySlot takes a slot if there is one.
func (l *loaders) trySlot(j *job) loadSlot {
	if l.borrows(j) {
		return loadSlot{right: ofOther}
	}
	s := loadSlot{right: ofOwn, kind: j.policy.loadSlots()}
	if s.kind != nil && !s.kind.TryAcquire() {
		return loadSlot{}
	}
	if l.loadSlots != nil && !l.loadSlots.TryAcquire() {
		s.freeOfKind()
		return loadSlot{}
	}
	return s
}

// trySlotOfFleet is trySlot for loads that nobody waits for: with FleetLoads it asks for a permit, too, which may take a round trip.
func (l *loaders) trySlotOfFleet(ctx context.Context, j *job) loadSlot {
	s := l.trySlot(j)
	if l.fleet == nil || s.right != ofOwn {
		return s
	}
	if s.permit = l.fleet.ask(ctx); s.permit == nil {
		l.freeSlot(s)
		return loadSlot{}
	}
	return s
}

// permitted takes a permit of FleetLoads for a load in the slot, if it needs one and has none, and reports whether the load may run. If
// not, the context has ended, and the slot is freed.
func (l *loaders) permitted(ctx context.Context, s *loadSlot) bool {
	if l.fleet == nil || s.right != ofOwn || s.permit != nil {
		return true
	}
	if s.permit = l.fleet.take(ctx, flight.CallersOf(ctx)); s.permit == nil {
		l.freeSlot(*s)
		return false
	}
	return true
}

// takeSlot waits for a slot. The context is that of the flight that wants to load, or of the caller of a GetMany.
func (l *loaders) takeSlot(ctx context.Context, j *job) (loadSlot, error) {
	if l.borrows(j) {
		return loadSlot{right: ofOther}, nil
	}
	// First the slot of the kind: a load that waits for it must not keep the Guard's from other kinds.
	s := loadSlot{right: ofOwn, kind: j.policy.loadSlots()}
	if s.kind != nil && !l.acquire(ctx, s.kind) {
		return loadSlot{}, closedOr(context.Cause(ctx))
	}
	if l.loadSlots != nil && !l.acquire(ctx, l.loadSlots) {
		s.freeOfKind()
		return loadSlot{}, closedOr(context.Cause(ctx))
	}
	return s, nil
}

// acquire waits for one of the slots.
func (l *loaders) acquire(ctx context.Context, s *slots.Slots) bool {
	if s.TryAcquire() {
		return true
	}
	l.journal.MaxLoads.Waits("max_loads", l.cfg.MaxLoads)
	defer l.journal.MaxLoads.Waited()
	return s.Acquire(ctx, flight.CallersOf(ctx))
}

func (l *loaders) freeSlot(s loadSlot) {
	if s.right != ofOwn {
		return
	}
	if s.permit != nil {
		l.fleet.release(s.permit)
	}
	if l.loadSlots != nil {
		l.loadSlots.Release()
	}
	s.freeOfKind()
}

func (s loadSlot) freeOfKind() {
	if s.kind != nil {
		s.kind.Release()
	}
}

// Package limit says when a load may run: MaxLoads of a Guard and of a Cache, and FleetLoads of all instances.
package limit

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/lock/permits"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/run/slots"
)

// How long, more or less, a caller waits between two attempts to get a spare slot. All together try as often, however many they are: on a
// busy machine looking would cost more than it finds.
const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 50 * time.Millisecond
	pauseOfAll    = time.Millisecond
)

// Config says what limits there are, and what they need of the Guard.
type Config struct {
	MaxLoads int             // 0 or less: no limit
	Permits  *permits.Locker // FleetLoads of them; nil: no limit

	Breaker    *breaker.Breaker              // of the part of the keyspace that has the permits
	Failed     func(err error)               // reports that there are no permits, and loads run without
	Background func(run func()) (begun bool) // runs it as a task of the Guard
	Journal    *report.Journal
}

// Loads are the limits of a Guard.
type Loads struct {
	Fleet *Fleet // nil: there is no such limit

	own     *slots.Slots  // of MaxLoads; nil: no limit
	freed   chan struct{} // wakes one of those that wait for a spare slot
	looking atomic.Int64  // how many do
	max     int
	journal *report.Journal
}

// New returns the limits.
func New(cfg Config) *Loads {
	l := &Loads{Fleet: newFleet(cfg), max: max(cfg.MaxLoads, 0), journal: cfg.Journal, freed: make(chan struct{}, 1)}
	if l.max > 0 {
		l.own = slots.New(l.max)
	}
	return l
}

// Waiting is how many loads wait for one of MaxLoads, and of FleetLoads.
func (l *Loads) Waiting() (own, fleet int) {
	if l.own != nil {
		own = l.own.Waiting()
	}
	if l.Fleet != nil {
		fleet = int(l.Fleet.waiting.Load())
	}
	return own, fleet
}

// BreakerOpened lets loads go that wait for permits, if it was the breaker of the part that has them.
func (l *Loads) BreakerOpened() {
	if l.Fleet != nil && l.Fleet.Suspended() {
		l.Fleet.pass(nil)
	}
}

// End stops asking for permits. It is followed by Close, when all loads have ended. Nil Loads need neither.
func (l *Loads) End() {
	if l != nil && l.Fleet != nil {
		l.Fleet.stop()
	}
}

// Close gives all permits back.
func (l *Loads) Close() {
	if l != nil && l.Fleet != nil {
		_ = l.Fleet.Permits.Close(nil) // always nil
	}
}

// Need is what a load needs.
type Need struct {
	Borrows bool         // no slot of its own
	Spare   bool         // one that no other load waits for, with its permit
	Kind    *slots.Slots // also one of these, of its Cache; nil: it does not
}

func (l *Loads) nothing(n Need) bool {
	return n.Borrows || l.own == nil && l.Fleet == nil && n.Kind == nil
}

// Slot is the right to run a load. The zero Slot is none.
type Slot struct {
	right
	kind   *slots.Slots // of the Cache, if the load takes one of them too
	permit *permit      // of FleetLoads, if that is on
}

// right says whose a slot is.
type right int

const (
	none    right = iota
	ofOther       // the right of another load, which this one is part of; or there is no limit
	ofOwn         // one of MaxLoads
)

// IsNone reports whether there is no right to run.
func (s Slot) IsNone() bool { return s.right == none }

// IsOwn reports whether the load has a slot of its own, which others may wait for.
func (s Slot) IsOwn() bool { return s.right == ofOwn }

// Try takes a slot if there is one. A spare one has a permit of FleetLoads, which may take a round trip: a caller that
// waits for no slot must not wait for a permit, either.
func (l *Loads) Try(ctx context.Context, n Need) Slot {
	if !n.Spare {
		return l.try(n)
	}
	return l.tryWith(n, func() *permit { return l.Fleet.ask(ctx) })
}

// AtHand is Try without a round trip: it finds only permits that the instance has.
func (l *Loads) AtHand(n Need) Slot { return l.tryWith(n, l.Fleet.try) }

func (l *Loads) tryWith(n Need, find func() *permit) Slot {
	s := l.try(n)
	if l.Fleet == nil || s.right != ofOwn {
		return s
	}
	if s.permit = find(); s.permit == nil {
		l.giveBack(s)
		return Slot{}
	}
	return s
}

func (l *Loads) try(n Need) Slot { return l.get(n, (*slots.Slots).TryAcquire) }

// Take waits for a slot, and reports whether it got one before the context ended, or before the last caller that waits
// for a spare one left.
func (l *Loads) Take(ctx context.Context, n Need) (s Slot, ok bool) {
	if n.Spare && !l.nothing(n) {
		s = l.takeSpare(ctx, n)
	} else {
		s = l.get(n, func(s *slots.Slots) bool { return l.acquire(ctx, s) })
	}
	return s, !s.IsNone()
}

// get takes first the slot of the kind: a load that waits for it must not keep the Guard's from other kinds.
func (l *Loads) get(n Need, acquire func(*slots.Slots) bool) Slot {
	if l.nothing(n) {
		return Slot{right: ofOther}
	}
	s := Slot{right: ofOwn, kind: n.Kind}
	if s.kind != nil && !acquire(s.kind) {
		return Slot{}
	}
	if l.own != nil && !acquire(l.own) {
		s.freeOfKind()
		return Slot{}
	}
	return s
}

// takeSpare tries now and again, and when a load has ended. It does not queue: a load in the queue of its Cache would keep that slot from
// callers while it waits for one of MaxLoads.
func (l *Loads) takeSpare(ctx context.Context, n Need) Slot {
	l.looking.Add(1)
	defer l.looking.Add(-1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	callers := flight.WaitersOf(ctx).Callers
	for pause := shortestPause; callers() > 0; pause = min(2*pause, longestPause) {
		s, atMost := l.Try(ctx, n), max(pause, time.Duration(l.looking.Load())*pauseOfAll)
		if !s.IsNone() || !l.pause(ctx, timer, atMost/2+rand.N(atMost)) {
			return s
		}
	}
	return Slot{}
}

// pause ends, with true, when a slot may be free.
func (l *Loads) pause(ctx context.Context, timer *time.Timer, atMost time.Duration) bool {
	timer.Reset(atMost)
	select {
	case <-l.freed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Permit takes a permit of FleetLoads for a load in the slot, if it needs one and has none, and reports whether the
// load may run. If not, the context has ended, and the slot is free.
func (l *Loads) Permit(ctx context.Context, s *Slot) bool {
	if l.Fleet == nil || s.right != ofOwn || s.permit != nil {
		return true
	}
	if s.permit = l.Fleet.take(ctx, flight.WaitersOf(ctx).Callers); s.permit == nil {
		l.Free(*s)
		return false
	}
	return true
}

// acquire waits for one of the slots.
func (l *Loads) acquire(ctx context.Context, s *slots.Slots) bool {
	if s.TryAcquire() {
		return true
	}
	l.journal.MaxLoads.Waits("max_loads", l.max)
	defer l.journal.MaxLoads.Waited()
	return s.Acquire(ctx, flight.WaitersOf(ctx).Callers)
}

// Free gives a slot back that a load has used.
func (l *Loads) Free(s Slot) {
	if s.right != ofOwn {
		return
	}
	l.giveBack(s)
	select {
	case l.freed <- struct{}{}:
	default: // one is woken already
	}
}

// giveBack wakes nobody: those that find no permit for a slot would wake each other for ever.
func (l *Loads) giveBack(s Slot) {
	if s.permit != nil {
		l.Fleet.release(s.permit)
	}
	if l.own != nil {
		l.own.Release()
	}
	s.freeOfKind()
}

func (s Slot) freeOfKind() {
	if s.kind != nil {
		s.kind.Release()
	}
}

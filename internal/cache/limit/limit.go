// Package limit says when a load may run: MaxLoads of a Guard and of a Cache, and Config.Limiter.
package limit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/run/slots"
	"github.com/cacheguard/go/internal/watch"
)

// Limiter is a limit beside MaxLoads, as Config.Limiter has it. What it returns gives the permit back; nil: there was
// none. Its error is reported.
type Limiter interface {
	Take(ctx context.Context, callers func() int) (free func(), err error)
	Try(ctx context.Context) (free func(), err error)
}

// Config says what limits there are.
type Config struct {
	MaxLoads int             // 0 or less: no limit
	Limiter  Limiter         // nil: no other limit
	Asked    func(err error) // reports that the Limiter gave a permit, or why one was not needed
	Journal  *watch.Journal
}

// Loads are the limits of a Guard.
type Loads struct {
	own     *slots.Slots // of MaxLoads; nil: no limit
	spare   queue
	queued  atomic.Int64 // how many wait for the Limiter
	max     int
	limiter Limiter
	asked   func(error)
	atOnce  context.Context //nolint:containedctx // of somebody who waits for nothing: it has ended
	journal *watch.Journal
}

// New returns the limits.
func New(cfg Config) *Loads {
	l := &Loads{max: max(cfg.MaxLoads, 0), limiter: cfg.Limiter, asked: cfg.Asked, journal: cfg.Journal}
	if l.max > 0 {
		l.own = slots.New(l.max)
	}
	var cancel context.CancelFunc
	l.atOnce, cancel = context.WithCancel(context.Background())
	cancel()
	return l
}

// Waiting is how many loads wait for one of MaxLoads, and for the Limiter.
func (l *Loads) Waiting() (own, limiter int) {
	if l.own != nil {
		own = l.own.Waiting()
	}
	return own, int(l.queued.Load())
}

// Need is what a load needs.
type Need struct {
	Borrows bool         // no slot of its own
	Spare   bool         // one that no other load waits for, with what the Limiter gives
	Until   time.Time    // a spare one: who can use it for longest gets it
	Kind    *slots.Slots // also one of these, of its Cache; nil: it does not
}

func (l *Loads) nothing(n Need) bool {
	return n.Borrows || l.own == nil && l.limiter == nil && n.Kind == nil
}

// Slot is the right to run a load. The zero Slot is none.
type Slot struct {
	right
	kind *slots.Slots // of the Cache, if the load takes one of them too
	free func()       // gives back what the Limiter gave; nil: nothing, yet
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

// Try takes a slot if there is one. A spare one has what the Limiter gives, which may take a round trip: a caller that
// waits for no slot must not wait for that, either. With a context that has ended, it takes none.
func (l *Loads) Try(ctx context.Context, n Need) Slot {
	s := l.try(n)
	if !n.Spare || l.limiter == nil || s.right != ofOwn {
		return s
	}
	if s.free = l.given(l.limiter.Try(ctx)); s.free == nil {
		l.giveBack(s)
		return Slot{}
	}
	return s
}

// MayAsk reports whether Try may take a round trip.
func (l *Loads) MayAsk() bool { return l.limiter != nil }

// IsAtHand reports whether there is a slot, without a round trip.
func (l *Loads) IsAtHand(n Need) bool {
	s := l.Try(l.atOnce, n)
	l.Free(s)
	return !s.IsNone()
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

// Permit asks the Limiter for a load in the slot, unless that has been done, and reports whether the
// load may run. If not, the context has ended, and the slot is free.
func (l *Loads) Permit(ctx context.Context, s *Slot) bool {
	if l.limiter == nil || s.right != ofOwn || s.free != nil {
		return true
	}
	if s.free = l.given(l.limiter.Try(l.atOnce)); s.free == nil {
		s.free = l.await(ctx)
	}
	if s.free == nil {
		l.Free(*s)
	}
	return s.free != nil
}

func (l *Loads) await(ctx context.Context) (free func()) {
	l.queued.Add(1)
	defer l.queued.Add(-1)
	l.journal.Limiter.Waits()
	defer l.journal.Limiter.Waited()
	return l.given(l.limiter.Take(ctx, flight.WaitersOf(ctx).Callers))
}

// given reports what the Limiter said.
func (l *Loads) given(free func(), err error) func() {
	if free != nil || err != nil {
		l.asked(err)
	}
	return free
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
	l.spare.wake(true)
}

// giveBack wakes nobody: those that get nothing of the Limiter would wake each other for ever.
func (l *Loads) giveBack(s Slot) {
	if s.free != nil {
		s.free()
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

package cacheguard

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/protocol"
)

// mode says how a flight gets its value.
type mode int

const (
	filled     mode = iota // through the lease
	direct                 // from the loader alone, or through the lease if Redis is back meanwhile
	bypassing              // from the loader alone, as somebody wants that
	background             // through the lease, for nobody in particular, without waiting for it
	spare                  // through the lease, with a spare slot: those who need the value must not wait for that
	hedged                 // from the loader alone, with a spare slot, beside a Redis that is slow
)

// flightKey tells flights apart. Calls that want different types, or kinds, cannot share a value. Flights of different
// scopes are separate: flights for a loader take no slot, so they must not wait for a flight that needs one, and a
// transaction has its own.
type flightKey struct {
	key   string
	kind  string
	shape protocol.Shape
	mode  mode
	scope scope
}

func (j *load) flight(m mode) flightKey {
	return flightKey{key: j.key, kind: j.policy.kind.name, shape: j.shape, mode: m, scope: j.scope}
}

// answer is what a flight returns to its callers.
type answer struct {
	value   any // *V
	err     error
	outcome Outcome // of the caller that started the flight, if it loaded
	before  uint64  // a value and absence are good for calls that began before this tick; any other error is for all
	absent  bool    // err says that there is no such thing
	brief   bool    // err is not to be remembered: it is for who began before that tick, too
	origin  string  // of the load that made it, as far as known
	loaded  uint64  // the tick when the loader had returned; 0: no loader ran

	// Why what was loaded is not stored; nil: it is, or need not be, or the answer was published before.
	unstored error

	// The loader gave up because something that it used was cancelled, but not by its waiters: only the call whose
	// loader it was has failed.
	cancelled bool
	again     bool // the loader returned what it had read: the call whose loader it was had that before
	joined    bool // of a caller whose flight, or one that it has entered, another call had begun
}

// answers reports whether the answer is good for a call that began at asked.
func (a *answer) answers(asked uint64) bool {
	switch {
	case a.cancelled:
		return !a.joined
	case a.again && !a.joined:
		return true
	}
	return asked < a.before || a.err != nil && !a.absent && !a.brief
}

// ticket is a call's share in a flight.
type ticket = flight.Ticket[flightKey, answer]

// enterRebuild joins, or starts, the flight that gets a value through the lease, which the read did not find, or found
// to be unfit.
func (g *Guard) enterRebuild(ctx context.Context, j *load, unfit []byte) (ticket, error) {
	m := filled
	if j.spare {
		m = spare
	}
	return g.enter(ctx, j, m, func(ctx context.Context, publish func(answer)) answer {
		if j.spare && !j.free { // Warm wants to hear what is stored
			publish = func(answer) {}
		}
		r := newRebuild(g, j, unfit, publish)
		a := r.run(ctx)
		if j.free {
			r.report(ctx, a)
		}
		return a
	})
}

// enterDirect joins, or starts, the flight that loads without the cache. The reason says why Redis cannot be used; nil
// if it can.
func (g *Guard) enterDirect(ctx context.Context, j *load, reason *RedisError) (ticket, error) {
	if reason != nil && errors.Is(reason, errBypassed) {
		return g.enter(ctx, j, bypassing, func(ctx context.Context, _ func(answer)) answer { return g.loadDirectly(ctx, j, Bypassed) })
	}
	return g.enter(ctx, j, direct, func(ctx context.Context, publish func(answer)) answer {
		if reason == nil {
			return g.loadDirectly(ctx, j, Loaded)
		}
		return g.loadBypassed(ctx, j, publish)
	})
}

// enter joins the key's flight, or starts one.
func (g *Guard) enter(ctx context.Context, j *load, m mode, run flight.Run[answer]) (t ticket, err error) {
	t, err = g.flights.Enter(ctx, j.flight(m), func(ctx context.Context, publish func(answer)) answer {
		defer j.skip()
		return run(ctx, publish)
	})
	if err != nil || t.Joined {
		j.skip()
	}
	if err != nil {
		return t, err
	}
	if j.free || m == filled && j.finish {
		t.Keep()
	}
	if t.Joined {
		g.tell(ctx, EventJoin, j.key, nil)
	}
	return t, nil
}

// waitFor waits for a flight's answer to a call that began at asked, or for something else; nil: for nothing else.
func waitFor(ctx context.Context, t ticket, asked uint64, otherwise <-chan struct{}) (answer, error) {
	joined := t.Joined // which is all of it that the function keeps
	a, err := t.Wait(ctx, otherwise, func(early answer) bool {
		early.joined = early.joined || joined
		return early.answers(asked)
	})
	a.joined = a.joined || joined
	return a, err
}

// awaitTicket waits for a flight's answer. For a call that joined the flight, the wait is a task.
func (g *Guard) awaitTicket(ctx context.Context, t ticket, key string, asked uint64, otherwise <-chan struct{}) (answer, error) {
	ctx, end := g.beginJoined(ctx, t, key)
	a, err := waitFor(ctx, t, asked, otherwise)
	return a, endJoined(end, a, err)
}

// beginJoined begins the task.
func (g *Guard) beginJoined(ctx context.Context, t ticket, key string) (within context.Context, end func(End)) {
	if !t.Joined || g.cfg.Hooks.Begin == nil {
		return ctx, nil
	}
	return g.cfg.Hooks.begin(ctx, TaskWait, key)
}

// endJoined ends it, and returns err.
func endJoined(end func(End), a answer, err error) error {
	if end == nil {
		return err
	}
	outcome := a.outcome
	if outcome == Loaded {
		outcome = Shared
	}
	end(End{Outcome: outcome, Origin: a.origin, Err: errors.Join(err, a.err)})
	return err
}

// unpack unpacks a flight's answer.
func unpack[V any](a answer) (v V, how Outcome, err error) {
	how = a.outcome
	if a.joined && how == Loaded {
		how = Shared
	}
	if a.err != nil {
		return v, how, a.err
	}
	return *a.value.(*V), how, nil
}

// refresh replaces the entry in the background, unless this instance is doing so already. If a loader asked for the
// entry, the refresh is no part of that load. A transaction, whose loads are not stored, replaces nothing.
func (g *Guard) refresh(ctx context.Context, j *load, raw []byte, took time.Duration) {
	if j.scope.isTransactions() || g.isSlow(j.key) { // the slots are for callers who do not want to wait for Redis
		j.skip()
		return
	}
	j.scope.nested, j.spare = false, true
	started := g.flights.Start(outsideLoads(ctx), j.flight(background), func(ctx context.Context, publish func(answer)) answer {
		defer j.skip()
		return newRebuild(g, j, raw, publish).refresh(ctx, took)
	})
	if !started {
		j.skip()
	}
}

// beingStored returns a channel that is closed when this Guard has stored a loaded value that others already have; nil
// if there is none.
func (g *Guard) beingStored(key string, shape protocol.Shape) <-chan struct{} {
	for _, nested := range []bool{false, true} {
		if stored := g.flights.Ending(flightKey{key: key, shape: shape, mode: filled, scope: scope{nested: nested}}); stored != nil {
			return stored
		}
	}
	return nil
}

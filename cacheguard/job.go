package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
)

// job is what a flight needs to know of the call that started it.
type job struct {
	key       string
	valueKey  string
	policy    *policy
	shape     protocol.Shape
	load      func(context.Context) (any, error) // returns a *V
	anew      func(context.Context) (any, error) // load without the value to be replaced; nil if it has none
	encode    func(context.Context, *loaded)     // what was loaded, before its callers have it; nil: it is not stored
	scope     scope
	unlimited bool   // it does not count for MaxLoads
	spare     bool   // it takes slots that no other load waits for
	free      bool   // its flight belongs to nobody, although callers wait for it
	aged      bool   // the cache has a value that seems too old, by the estimate of the server's clock
	batch     *batch // that loads the key; nil: the load is on its own

	gathering *gathering // whose batches it may join; nil: none

	kind   string         // the name of a Cache; empty without
	epochs *epoch.Reading // from before the job; nil: nobody has asked yet

	known []string             // tags that the value will have in any case
	tags  func(v any) []string // tags of the value, a *V, or of absence, nil; nil: none. Those of SetTags count too.
}

// after is the job, whose load begins after the epochs were asked for.
func (j *job) after(epochs epoch.Reading) *job {
	j.epochs = &epochs
	return j
}

func untyped[V any](load func(context.Context) (V, error)) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		v, err := load(ctx)
		return &v, err
	}
}

// forgetOld hides the value to be replaced from the loader: it may have been invalidated since it was read, and must
// not become valid again.
func (j *job) forgetOld() {
	if j.anew != nil {
		j.load, j.anew = j.anew, nil
	}
}

// skip tells the batch not to wait for this key any more.
func (j *job) skip() {
	if j.batch != nil {
		j.batch.Skip(j.key)
	}
}

// mode says how a flight gets its value.
type mode int

const (
	filled     mode = iota // through the lease
	direct                 // from the loader alone
	background             // through the lease, for nobody in particular, without waiting for it
	lowly                  // through the lease, with a spare slot: those who need the value must not wait for that
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

func (j *job) flight(m mode) flightKey {
	return flightKey{key: j.key, kind: j.kind, shape: j.shape, mode: m, scope: j.scope}
}

// answer is what a flight returns to its callers.
type answer struct {
	value   any // *V
	err     error
	outcome Outcome // of the caller that started the flight, if it loaded
	before  uint64  // a value and absence are good for calls that began before this tick; any other error is for all
	absent  bool    // err says that there is no such thing
	origin  string  // of the load that made it, as far as known
	loaded  uint64  // the tick when the loader had returned; 0: no loader ran

	// The loader gave up because something that it used was cancelled, but not by its waiters: only the call whose
	// loader it was has failed.
	cancelled bool
}

// answers reports whether the answer is good for a call that began at asked. If joined, another call's loader
// ran.
func (a *answer) answers(asked uint64, joined bool) bool {
	if a.cancelled {
		return !joined
	}
	return asked < a.before || a.err != nil && !a.absent
}

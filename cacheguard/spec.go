package cacheguard

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
)

// loadSpec says where a call gets its value from. Get, GetMany and Fetch differ only in this.
type loadSpec[V any] struct {
	load // as far as it is known before a flight

	loader   func(context.Context) (V, error)         // of Get
	loadMany batchLoad                                // of GetMany
	loadEach func(context.Context, string) (V, error) // of a GetMany that loads one by one
	reload   func(context.Context, *V) (V, error)     // of Fetch, as what follows

	judge       func(V) Verdict
	despiteTags func(V) bool // nil: none
	skipLocal   bool
	cacheOnly   bool            // nothing is loaded
	noted       *protocol.Stamp // of what was read from Redis; nil: nobody asks
	past        *Past           // whether it goes past the cache; nil: nobody asks
	part        bool            // OnGet does not hear of it

	tagger func(key string, v *V) []string // tags of the value, or of absence, which is nil; nil: none. Those of SetTags count too.
}

// load is what a flight of a key needs to know of the call that started it. Values travel as *V.
type load struct {
	key       string
	valueKey  string  // empty: not made yet
	policy    *policy // of the entry
	shape     protocol.Shape
	run       func(context.Context) (any, error) // returns a *V
	anew      func(context.Context) (any, error) // run without the value to be replaced; nil if it has none
	encode    func(*loaded)                      // what was loaded, before its callers have it; nil: it is not stored
	tags      func(v any) []string               // of the value, or of absence, nil
	known     []string                           // tags that the value will have in any case
	made      protocol.Stamp                     // of the value that the loader may return again; zero: of none
	epochs    *epoch.Reading                     // from before the flight; nil: nobody has asked yet
	scope     scope
	batch     *batch    // that loads the key; nil: the load is on its own
	unlimited bool      // it does not count for MaxLoads
	finish    bool      // it goes on when nobody waits for it
	spare     bool      // it takes slots that no other load waits for, and does not run if its value cannot be stored
	free      bool      // its flight belongs to nobody, although callers wait for it
	ends      time.Time // of a hedge: when the call ends that began it; zero: it is none
	aged      bool      // the cache has a value that seems too old, by the estimate of the server's clock
}

// specOf is a spec for entries of the policy, which does not say yet what loads them.
func specOf[V any](p *policy) loadSpec[V] { return loadSpec[V]{load: load{policy: p}} }

// loadOf is what a flight of the key has to do, with the loader that is to replace old.
func (s loadSpec[V]) loadOf(g *Guard, key string, of scope, old *V) *load {
	l := s.load
	l.key, l.valueKey, l.shape, l.scope = key, s.valueKeyOf(g, key), protocol.ShapeOf[V]{}, of
	switch reload, each := s.reload, s.loadEach; {
	case s.loader != nil:
		l.run = untyped(s.loader)
	case each != nil:
		l.run = untyped(func(ctx context.Context) (V, error) { return each(ctx, key) })
	case reload != nil:
		l.run = untyped(func(ctx context.Context) (V, error) { return reload(ctx, old) })
		if old != nil {
			l.anew = untyped(func(ctx context.Context) (V, error) { return reload(ctx, nil) })
		}
	}
	if tagger := s.tagger; tagger != nil {
		l.tags = func(v any) []string { return tagger(key, valueOf[V](v)) }
	}
	return &l
}

// in makes the load a part of the batch; nil: it is on its own.
func (j *load) in(b *batch) *load {
	if j.batch = b; b != nil {
		j.run = func(ctx context.Context) (any, error) { return b.obtain(ctx, j.key) }
	}
	return j
}

// isGathered reports whether the batch will have the value: nothing of the user's loads it here.
func (j *load) isGathered() bool { return j.batch != nil && j.batch.Covers(j.key) }

func untyped[V any](run func(context.Context) (V, error)) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		v, err := run(ctx)
		return &v, err
	}
}

// valueOf is the *V; nil: absence.
func valueOf[V any](v any) *V {
	p, _ := v.(*V)
	return p
}

// reading begins a question for the epochs of what the flight loads.
func (j *load) reading(g *Guard) epoch.Reading {
	return g.epochs.Begin(j.key, j.valueKey, j.policy.kind.name, j.known)
}

// forgetOld hides the value to be replaced from the loader: it may have been invalidated since it was read, and must
// not become valid again.
func (j *load) forgetOld() {
	if j.anew != nil {
		j.run, j.anew, j.made = j.anew, nil, protocol.Stamp{}
	}
}

// skip tells the batch not to wait for this key any more.
func (j *load) skip() {
	if j.batch != nil {
		j.batch.Skip(j.key)
	}
}

// valueKeyOf is the key of the value in Redis.
func (s *loadSpec[V]) valueKeyOf(g *Guard, key string) string {
	if s.valueKey == "" {
		return g.keys.ValueKey(key) + s.policy.kind.slot
	}
	return s.valueKey
}

// refusal is the error of a call that may not load without Redis; nil if it may.
func (s *loadSpec[V]) refusal(g *Guard, reason *RedisError) error {
	switch {
	case s.cacheOnly, s.spare && reason == nil:
		return ErrNotCached
	case s.spare:
		return reason
	case reason != nil && g.cfg.FailClosed && !errors.Is(reason, errBypassed):
		return reason
	}
	return nil
}

// mustBeJudged reports whether the answer may have been loaded before the call began, although it was not in Redis
// then: the call reads it again, so that Judge sees it.
func (s *loadSpec[V]) mustBeJudged(a *answer, asked uint64) bool {
	return s.judge != nil && a.err == nil && (a.outcome == Hit || a.loaded > 0 && asked >= a.loaded)
}

// isPatient reports whether the call waits for a fresh value before it takes a stale one. A GetMany does not.
func (s *loadSpec[V]) isPatient() bool {
	return s.loader != nil && !s.spare && s.policy.patience > 0
}

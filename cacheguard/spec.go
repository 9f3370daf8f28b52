package cacheguard

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/cache/protocol"
)

// loadSpec says where a call gets its value from. Get, GetMany and Fetch differ only in this.
type loadSpec[V any] struct {
	policy   *policy                                               // of the entry; nil: the Guard's ordinary one
	valueKey string                                                // of the key; empty: not made yet
	load     func(context.Context) (V, error)                      // of Get
	loadMany func(context.Context, []string) (map[string]V, error) // of GetMany
	loadEach func(context.Context, string) (V, error)              // of a GetMany that loads one by one
	reload   func(context.Context, *V) (V, error)                  // of Fetch, as what follows

	judge       func(V) Verdict
	despiteTags func(V) bool // nil: none
	skipLocal   bool
	cacheOnly   bool // nothing is loaded
	unlimited   bool // the load does not count for MaxLoads
	spare       bool // it takes slots that no other load waits for, and does not run if its value cannot be stored

	gathering *gathering // nil: it shares its call with no other key

	kind  string            // the name of a Cache; empty without
	known []string          // tags that the value will have in any case
	tags  func(*V) []string // tags of the value, or of absence, which is nil; nil: none. Those of SetTags count too.

	tagsEach func(key string, v *V) []string // of a GetMany of a Cache: tags, which depend on the key
}

// tagsOf is tags for a value as it travels.
func (s loadSpec[V]) tagsOf() func(any) []string {
	if s.tags == nil {
		return nil
	}
	return func(v any) []string { return s.tags(valueOf[V](v)) }
}

// valueOf is the *V; nil: absence.
func valueOf[V any](v any) *V {
	p, _ := v.(*V)
	return p
}

// job is what a flight of the key has to do, with the loader that is to replace old.
func (s loadSpec[V]) job(g *Guard, key string, of scope, old *V) *job {
	j := s.jobOf(g, key, of, untyped(s.loader(old)))
	if old != nil && s.load == nil {
		j.anew = untyped(s.loader(nil))
	}
	return j
}

// jobOf is job with a loader of values as they travel.
func (s loadSpec[V]) jobOf(g *Guard, key string, of scope, load func(context.Context) (any, error)) *job {
	return &job{
		key: key, valueKey: s.valueKeyOf(g, key), policy: s.policyOf(g), shape: protocol.ShapeOf[V]{}, scope: of, load: load,
		unlimited: s.unlimited, spare: s.spare, gathering: s.gathering, kind: s.kind, known: s.known, tags: s.tagsOf(),
	}
}

// policyOf is how the entry is kept.
func (s loadSpec[V]) policyOf(g *Guard) *policy {
	if s.policy == nil {
		return &g.ordinary
	}
	return s.policy
}

// valueKeyOf is the key of the value in Redis.
func (s loadSpec[V]) valueKeyOf(g *Guard, key string) string {
	if s.valueKey == "" {
		return g.keys.ValueKey(key) + s.policyOf(g).slot.suffix
	}
	return s.valueKey
}

// loader is the loader that is to replace old.
func (s loadSpec[V]) loader(old *V) func(context.Context) (V, error) {
	if s.load != nil {
		return s.load
	}
	return func(ctx context.Context) (V, error) { return s.reload(ctx, old) }
}

// refusal is the error of a call that may not load without Redis; nil if it may.
func (s loadSpec[V]) refusal(g *Guard, reason *RedisError) error {
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

// mustBeJudged reports whether the answer may have been loaded before the call began, although it was not in Redis then:
// the call reads it again, so that Judge sees it.
func (s loadSpec[V]) mustBeJudged(a *answer, asked uint64) bool {
	return s.judge != nil && a.err == nil && (a.outcome == Hit || a.loaded > 0 && asked >= a.loaded)
}

// assess is the state of what was read, as the caller sees it.
func (s loadSpec[V]) assess(r *readResult[V]) (state, found[V]) {
	if s.judge == nil || r.value == nil {
		return r.state, r.found
	}
	switch s.judge(*r.value) {
	case Serve:
		return fresh, found[V]{value: r.value, how: Hit}
	case Refresh:
		return stale, found[V]{value: r.value, how: Stale}
	case Replace:
	}
	return expired, r.found
}

// decide judges what was read, as the caller sees it. It reports a stale value that is served, and a failed read.
func (s loadSpec[V]) decide(g *Guard, key string, r *readResult[V], readErr error) decision[V] {
	seenAs, answer := s.assess(r)
	d := decision[V]{action: decide(seenAs), found: answer, aged: s.judge == nil && r.aged()}
	switch d.action {
	case doRefresh:
		if s.judge == nil && r.state == stale && !s.isPatient(g) {
			g.onStale(key, r.entry)
		}
	case doBypass:
		d.reason = g.redisError("get", key, readErr)
		g.readFailed(s.valueKeyOf(g, key), readErr)
		if old, ok := s.staleFromLocal(g, key); ok {
			d.action, d.found = doServe, old
		}
	case doServe, doRebuild, doLoadApart:
	}
	return d
}

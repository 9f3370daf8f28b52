package cacheguard

import (
	"context"
	"sync/atomic"

	"github.com/cacheguard/go/internal/cache/protocol"
)

// Verdict is a Source's judgement of a cached value.
type Verdict int

// The verdicts.
const (
	Serve   Verdict = iota // fresh: serve it
	Refresh                // serve it, and replace it in the background
	Replace                // do not serve it: load another one
)

// Source says where Fetch gets values, and which are fresh.
type Source[V any] struct {
	// Judge alone judges a cached value, without StaleFor and EarlyRefresh. It may be called more than once. Default:
	// all are fresh.
	Judge func(V) Verdict

	// Load is the loader, as in Get. The value old is the one to be replaced; nil if there is none, or if it was
	// invalidated before the load began. Returned again, it has only the tags that this Load names (but see KeepTags).
	// Default: Fetch loads nothing, and returns ErrNotCached.
	Load func(ctx context.Context, old *V) (V, error)

	// Tags are tags beside those of SetTags, known before Load begins.
	Tags []string

	// DespiteTags reports whether this call may use a value with an invalidated tag. Default: none.
	DespiteTags func(V) bool

	// SkipLocal bypasses the local tier.
	SkipLocal bool

	// Unlimited loads neither count towards MaxLoads nor wait for it.
	Unlimited bool

	// Finish lets a load that this call starts or joins go on when nobody waits any more.
	Finish bool

	// Part says that the call is one of several for a request: EventGet does not report it, and StaleFor is ignored.
	Part bool

	// Past gets, before Load is called, whether this call goes past the cache.
	Past *Past

	// Made gets what the value that this call reads from Redis was made under, for the KeepTags of a later Fetch. nil:
	// KeepTags is about the value old.
	Made *Made
}

// Past is whether a Fetch goes past the cache: its Outcome is Bypassed.
type Past struct{ is, wanted atomic.Bool }

// Is reports whether it does.
func (p *Past) Is() bool { return p.is.Load() }

// IsWanted reports whether Bypass, BypassFleet or Config.Gate wants that.
func (p *Past) IsWanted() bool { return p.wanted.Load() }

// Made is what a value was made under: its tags, and what had been invalidated by then. The zero Made is of no value.
type Made struct{ stamp protocol.Stamp }

// Fetch is Get for values that carry their own freshness, as HTTP responses do; SetTTL sets how long they stay in the
// cache.
func Fetch[V any](ctx context.Context, g *Guard, key string, s Source[V]) (V, Outcome, error) {
	if g == nil {
		var none V
		return none, "", errNilGuard
	}
	spec := &loadSpec[V]{
		load:  load{policy: &g.ordinary, unlimited: s.Unlimited, finish: s.Finish, known: s.Tags},
		judge: s.Judge, reload: s.Load, skipLocal: s.SkipLocal, cacheOnly: s.Load == nil, despiteTags: s.DespiteTags, part: s.Part, past: s.Past,
	}
	if s.Part {
		spec.policy = &g.kinds.parts
	}
	if s.Made != nil {
		spec.noted, spec.made = &s.Made.stamp, s.Made.stamp
	}
	return ask(ctx, g, key, spec, nil)
}

// Outcome says how a Get came by its answer.
type Outcome string

// The outcomes. A Get that ended without an answer (its context ended, the Guard was closed, the key is bad) has none.
const (
	Hit      Outcome = "hit"      // read from Redis, fresh
	Local    Outcome = "local"    // from the tier in this process, fresh
	Stale    Outcome = "stale"    // within StaleFor; or from the local tier, when Redis does not answer
	Negative Outcome = "negative" // absence, remembered
	Loaded   Outcome = "loaded"   // by this call, or by itself after WaitTimeout
	Shared   Outcome = "shared"   // loaded by another call, here or elsewhere
	Bypassed Outcome = "bypassed" // loaded without the cache: Redis is unavailable, an invalidation is pending, or see Bypass and Gate
)

// Peek returns what the cache has of the thing, in the local tier or Redis, and says where. It loads and refreshes
// nothing, and no EventGet reports it. The error is CacheConfig.NotFound, with the outcome negative, for remembered
// absence, and ErrNotCached for all else that a Get would load.
func (c *Cache[K, V]) Peek(ctx context.Context, k K) (v V, how Outcome, err error) {
	if c == nil {
		return v, "", errNilCache
	}
	key, valueKey := c.keys(k)
	spec := loadSpec[V]{load: load{policy: &c.policy, valueKey: valueKey}, cacheOnly: true}
	v, how, err = retrieve(ctx, c.guard, key, &spec, nil)
	if c.guard.rehearsal != nil {
		v = handOut(c.guard, &spec, key, v, err)
	}
	return c.own(v, err), how, c.policy.absence(key, err)
}

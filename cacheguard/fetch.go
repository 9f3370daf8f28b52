package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/cache/pages"
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

// Source says where Fetch gets values that carry their own freshness, and which of them are fresh.
type Source[V any] struct {
	// Judge judges a cached value. It alone decides: the Guard's StaleFor and EarlyRefresh are ignored. It is called in
	// the caller's goroutine, perhaps more than once, and may call Get for other keys. Values that were loaded since
	// the call began are not judged. Default: all values are fresh.
	Judge func(V) Verdict

	// Load is the loader, as in Get. The value old is the one to be replaced. It is nil if there is none, or if it was
	// invalidated before the load began. One that is returned again has the tags that this Load names, and no others.
	// Default: Fetch loads nothing, and returns ErrNotCached instead.
	Load func(ctx context.Context, old *V) (V, error)

	// Tags are tags that the value has in any case, in addition to those of SetTags. They are known before Load begins,
	// so an InvalidateTags of other tags during the load does not keep the value from being stored.
	Tags []string

	// DespiteTags reports whether this call may use a value even if one of its tags was invalidated, as it may if the
	// value only says where others are. Default: no value.
	DespiteTags func(V) bool

	// SkipLocal bypasses the local tier.
	SkipLocal bool

	// Unlimited loads do not count towards MaxLoads, and do not wait for it. This is for loads that would run without
	// the Guard too.
	Unlimited bool
}

// Fetch is Get for values that carry their own freshness, as HTTP responses do. Everything said of Get holds.
// SetTTL sets how long the value stays in the cache. The Outcome says how Fetch came by the value.
//
// While Redis does not answer and StaleFor is set, Fetch serves values of the local tier, unless Judge wants them
// replaced.
func Fetch[V any](ctx context.Context, g *Guard, key string, s Source[V]) (V, Outcome, error) {
	if g == nil {
		var none V
		return none, "", errNilGuard
	}
	spec := &loadSpec[V]{
		load: load{policy: &g.ordinary, unlimited: s.Unlimited, known: s.Tags}, judge: s.Judge, reload: s.Load, skipLocal: s.SkipLocal, cacheOnly: s.Load == nil, despiteTags: s.DespiteTags,
	}
	if page, is := ctx.(*pages.Read); is {
		if spec.policy = &g.pages; page.Made != nil {
			spec.noted, spec.made = page.Made, *page.Made
		}
	}
	return ask(ctx, g, key, spec, nil)
}

// Outcome says how a Get came by its answer.
type Outcome string

// The outcomes. A Get that ended without an answer (its context ended, the Guard was closed, the key is bad) has none.
const (
	Hit      Outcome = "hit"      // read from Redis, fresh
	Local    Outcome = "local"    // from the tier in this process, fresh
	Stale    Outcome = "stale"    // past its TTL but within StaleFor; or from the local tier, when Redis does not answer
	Negative Outcome = "negative" // absence, remembered
	Loaded   Outcome = "loaded"   // this call started the load, or loaded by itself after WaitTimeout
	Shared   Outcome = "shared"   // another call's load, here or on another instance
	Bypassed Outcome = "bypassed" // loaded without the cache: Redis is unavailable, the Guard disabled, an invalidation of the key is pending, or see Bypass
)

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

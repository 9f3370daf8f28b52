package cacheguard

import (
	"context"
	"time"
)

// Verdict is what a Source says of a value that is in the cache.
type Verdict int

// The verdicts.
const (
	Serve   Verdict = iota // it is good
	Refresh                // it is good enough, and to be replaced in the background
	Replace                // it is not good: load another one, which takes its place
)

// Source is where Fetch has values from that know themselves how long they are good.
type Source[V any] struct {
	// Judge looks at a value that is in the cache. It decides alone: StaleFor and EarlyRefresh of the Guard do not count.
	// It is called in the caller's goroutine, perhaps more than once, and may call Get for other keys. Values that were
	// loaded since the call began are not judged. Default: all values are good.
	Judge func(V) Verdict

	// Load is the loader, as of Get. Old is the value that the caller who started the load wanted replaced; nil if there was
	// none. Default: nothing is loaded, and Fetch returns ErrNotCached instead.
	Load func(ctx context.Context, old *V) (V, error)

	// SkipLocal has the local tier not asked.
	SkipLocal bool
}

// Fetch is Get for values that know themselves how long they are good, as HTTP responses do. All that is said of Get holds;
// SetTTL says how long the value stays in the cache. The Outcome says how Fetch came by the value.
//
// While Redis does not answer, values of the local tier are served as Judge says, and with StaleFor those that Judge would
// have replaced are not.
func Fetch[V any](ctx context.Context, g *Guard, key string, s Source[V]) (V, Outcome, error) {
	if g == nil {
		var none V
		return none, "", errNilGuard
	}
	return toldFetch(ctx, g, key, origin[V]{judge: s.Judge, reload: s.Load, skipLocal: s.SkipLocal, lookOnly: s.Load == nil})
}

// toldFetch is fetch, of which OnGet is told.
func toldFetch[V any](ctx context.Context, g *Guard, key string, src origin[V]) (V, Outcome, error) {
	if g.cfg.Hooks.OnGet == nil {
		return fetch(ctx, g, key, src)
	}
	start := time.Now()
	v, outcome, err := fetch(ctx, g, key, src)
	g.cfg.Hooks.OnGet(ctx, key, outcome, time.Since(start), err)
	return v, outcome, err
}

// origin is what Get and Fetch have in common.
type origin[V any] struct {
	load      func(context.Context) (V, error)     // of Get
	judge     func(V) Verdict                      // of Fetch, as the rest
	reload    func(context.Context, *V) (V, error) //
	skipLocal bool
	lookOnly  bool
}

// loader is the loader that is to replace old.
func (s *origin[V]) loader(old *V) func(context.Context) (V, error) {
	if s.load != nil {
		return s.load
	}
	return func(ctx context.Context) (V, error) { return s.reload(ctx, old) }
}

// state is what the source makes of what was read.
func (s *origin[V]) state(seen *seen[V]) (state, found[V]) {
	if s.judge == nil || seen.value == nil {
		return seen.state, seen.found
	}
	switch s.judge(*seen.value) {
	case Serve:
		return fresh, found[V]{value: seen.value, how: Hit}
	case Refresh:
		return stale, found[V]{value: seen.value, how: Stale}
	case Replace:
	}
	return expired, seen.found
}

// kept is what the local tier has, if it may be served.
func (s *origin[V]) kept(g *Guard, key string) (f found[V], ok bool) {
	if s.skipLocal {
		return f, false
	}
	f, ok = kept[V](g, key)
	if ok && s.judge != nil && f.value != nil {
		ok = s.judge(*f.value) == Serve // to be replaced in Redis, it is to be read there
	}
	return f, ok
}

// lastResort is what the local tier has when Redis does not answer.
func (s *origin[V]) lastResort(g *Guard, key string) (f found[V], ok bool) {
	if s.skipLocal {
		return f, false
	}
	f, ok = lastResort[V](g, key)
	if ok && s.judge != nil && f.value != nil {
		ok = s.judge(*f.value) != Replace
	}
	return f, ok
}

// sample has a hit verified. What has a judge changes with each load, and cannot be compared.
func (s *origin[V]) sample(ctx context.Context, g *Guard, key string, served *V) {
	if s.load != nil && g.drawn() {
		verify(ctx, g, key, served, s.load)
	}
}

package cacheguard

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/protocol"
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

	// SkipLocal bypasses the local tier.
	SkipLocal bool

	// Unlimited loads do not count for MaxLoads, and do not wait for it: what they do would be done without the Guard too.
	Unlimited bool
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
	return toldFetch(ctx, g, key, origin[V]{
		judge: s.Judge, reload: s.Load, skipLocal: s.SkipLocal, lookOnly: s.Load == nil, unlimited: s.Unlimited,
	})
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

// beingStored returns what is closed when this Guard has stored what a load of the key has returned to others; else nil.
func (g *Guard) beingStored(key string, sh protocol.Shape) <-chan struct{} {
	for _, nested := range []bool{false, true} {
		if stored := g.flights.Ending(flightKey{key: key, shape: sh, mode: filled, nested: nested}); stored != nil {
			return stored
		}
	}
	return nil
}

// notCached is the error of a Fetch that may not load.
func (g *Guard) notCached(ctx context.Context, key string) error {
	if ctx.Err() != nil {
		return ended(ctx, key)
	}
	return ErrNotCached
}

// over waits for the end of what is under way, if anything is, and reports whether that was before ctx ended.
func over(ctx context.Context, underWay <-chan struct{}) bool {
	if underWay == nil {
		return false
	}
	select {
	case <-underWay:
		return true
	case <-ctx.Done():
		return false
	}
}

// origin is what Get and Fetch have in common.
type origin[V any] struct {
	load      func(context.Context) (V, error)     // of Get
	judge     func(V) Verdict                      // of Fetch, as the rest
	reload    func(context.Context, *V) (V, error) //
	skipLocal bool
	lookOnly  bool
	unlimited bool
}

// job is what a flight has to do; nil: nothing is to be loaded.
func (s origin[V]) job(ctx context.Context, g *Guard, key string, old *V) *job {
	if s.lookOnly {
		return nil
	}
	j := newJob(ctx, g, key, g.redisKey(key), s.loader(old))
	j.unlimited = s.unlimited
	return j
}

// loader is the loader that is to replace old.
func (s origin[V]) loader(old *V) func(context.Context) (V, error) {
	if s.load != nil {
		return s.load
	}
	return func(ctx context.Context) (V, error) { return s.reload(ctx, old) }
}

// wouldJudge reports whether the answer is a value that may have been loaded before the call began, though it was not in Redis
// then: the judge has to see it, so it is read again.
func (s origin[V]) wouldJudge(a *answer, asked uint64) bool {
	return s.judge != nil && a.err == nil && (a.outcome == Hit || a.loaded > 0 && asked >= a.loaded)
}

// state is what the source makes of what was read.
func (s origin[V]) state(seen *seen[V]) (state, found[V]) {
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
func (s origin[V]) kept(g *Guard, key string) (f found[V], ok bool) {
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
func (s origin[V]) lastResort(g *Guard, key string) (f found[V], ok bool) {
	if s.skipLocal {
		return f, false
	}
	f, ok = lastResort[V](g, key, s.judge != nil)
	if ok && s.judge != nil && f.value != nil {
		ok = s.judge(*f.value) != Replace
	}
	return f, ok
}

// sample has a hit verified. What has a judge changes with each load, and cannot be compared.
func (s origin[V]) sample(ctx context.Context, g *Guard, key string, served *V) {
	if s.load != nil && g.drawn() {
		verify(ctx, g, key, served, s.load)
	}
}

package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/write"
)

// maxAsks is how often a call asks again because the answer it shared was older than itself, before it loads by itself.
const maxAsks = 3

// Get returns the value of the key: from the cache, or from load. The function load then runs once for all callers, on all
// instances, that ask while it runs.
//
// A Get that begins after an Invalidate returned nil, in any process, never returns a value that was loaded before it (with
// Config.Local: see LocalConfig).
// Callers that share a read or a load share one value: do not change it.
//
// The loader gets a context with the values of the first caller's. It is cancelled when the last caller has left, when LoadTimeout
// passes and when the Guard is closed. The callers get what load returns, like this:
//
//   - A value goes to all that wait, even if it cannot be stored.
//   - ErrNotFound goes to all that wait, and Get remembers it for NegativeTTL.
//   - Another error goes as it is to the callers on this instance, and as a *LoadError to those on others. Get remembers it for
//     a moment (50 ms, doubling with each failure to at most 5 s), and returns it in that time without calling load.
//   - A panic becomes a *PanicError.
//
// When ctx ends, Get returns an error that matches ctx.Err() and the context's cause. The load goes on for the others.
func Get[V any](ctx context.Context, g *Guard, key string, load func(context.Context) (V, error)) (V, error) {
	if g == nil {
		var none V
		return none, errNilGuard
	}
	v, _, err := ask(ctx, g, key, loadSpec[V]{load: load})
	return v, err
}

// query is a Get or a Fetch under way.
type query[V any] struct {
	guard *Guard
	key   string
	spec  loadSpec[V]
	asked uint64 // the tick of the Guard's clock when the call began

	besides bool // it loads beside Redis already, or has tried to
}

// retrieve answers a Get or a Fetch: from the local tier, from Redis, or with a load.
func retrieve[V any](ctx context.Context, g *Guard, key string, spec *loadSpec[V]) (v V, how Outcome, err error) {
	if err := admit(ctx, g, key, spec.load != nil || spec.reload != nil || spec.cacheOnly); err != nil {
		return v, "", err
	}
	if kept, ok := spec.tryLocal(ctx, g, key); ok {
		return kept.result()
	}
	return retrieveRemote(ctx, g, key, *spec)
}

// retrieveRemote is retrieve when the local tier has no answer.
func retrieveRemote[V any](ctx context.Context, g *Guard, key string, spec loadSpec[V]) (v V, how Outcome, err error) {
	q := query[V]{guard: g, key: key, spec: spec, asked: g.clock.Now()}
	if reason := g.mustBypass(ctx, key); reason != nil {
		return q.bypass(ctx, reason)
	}
	within := pastOf(ctx, g, key)
	if within.Named != nil {
		return q.bypass(ctx, nil)
	}
	if g.isSlow(key) && spec.mayHedge(ctx, g, key) {
		return q.retrieveSlowly(ctx, within)
	}
	return q.ask(ctx, within)
}

// ask asks Redis.
func (q *query[V]) ask(ctx context.Context, within write.Past) (v V, how Outcome, err error) {
	if q.spec.load != nil && q.guard.local == nil && !within.Any() && q.guard.expected.Expected() {
		if v, how, done, err := q.awaitRebuild(ctx, q.job(ctx, nil, false), nil, nil); done {
			return v, how, err
		}
	}
	return q.read(ctx, within)
}

// read reads the entry from Redis, and does what decide says. It reads again if a load that the call joined was older than
// the call.
func (q *query[V]) read(ctx context.Context, within write.Past) (v V, how Outcome, err error) {
	g := q.guard
	valueKey := q.spec.valueKeyOf(g, q.key)
	for range maxAsks + 1 {
		mark := g.local.Mark(q.key)
		var storing <-chan struct{} // looked for before the read, which sees anything stored before this
		if q.spec.cacheOnly {
			storing = g.beingStored(q.key, protocol.ShapeOf[V]{})
		}
		epochs := g.epochs.Begin(q.key, valueKey, q.spec.kind, q.spec.known)
		read, err := g.link.Ask(ctx, valueKey, epochs.Keys()...)
		if err != nil {
			return v, "", unanswered(ctx, q.key, err)
		}
		if v, how, done, err := q.awaitRead(ctx, read); done {
			return v, how, err
		}
		g.expected.Found(read.Raw != nil || read.Err != nil)
		epochs.Take(read)
		r := decodeRead[V](g, q.key, q.spec.policyOf(g), read, nil)
		r.compare(ctx, &epochs)
		if more := epochs.Lacking(); more != nil {
			if v, how, done, err := q.awaitRead(ctx, more); done {
				return v, how, err
			}
		}
		r, redisErr, err := confirmed(ctx, g, q.key, mark, read, r, &epochs, q.spec)
		if err != nil {
			return v, "", unanswered(ctx, q.key, err)
		}
		switch d := q.spec.decide(g, q.key, r, redisErr); {
		case within.Must(r.state != unreachable, r.entry.Stamp):
			return q.bypass(ctx, nil)
		case d.action == doServe:
			return d.found.result()
		case d.action == doRefresh && d.how == Stale && q.spec.isPatient(g):
			return q.awaitFresh(ctx, q.job(ctx, d.value, d.aged).after(epochs), r, read.Raw)
		case d.action == doRefresh:
			if !q.spec.cacheOnly {
				g.refresh(ctx, q.job(ctx, d.value, d.aged).after(epochs), read.Raw, r.entry.Took)
			}
			return d.found.result()
		case d.action == doBypass, d.action == doLoadApart && !q.spec.cacheOnly:
			return q.bypass(ctx, d.reason)
		case q.spec.cacheOnly:
			if err := q.awaitStored(ctx, storing); err != nil {
				return v, "", err
			}
		default:
			if v, how, done, err := q.awaitRebuild(ctx, q.job(ctx, d.value, d.aged).after(epochs), d.value, read.Raw); done {
				return v, how, err
			}
		}
	}
	return q.bypass(ctx, nil)
}

func (q *query[V]) job(ctx context.Context, old *V, aged bool) *job {
	j := q.spec.job(q.guard, q.key, scopeOf(ctx, q.guard), old)
	j.aged = aged
	return j
}

// awaitRebuild waits for the load of a value that the read did not find, or found to be unfit. Not done: what the load returned
// is no answer to this call.
func (q *query[V]) awaitRebuild(ctx context.Context, j *job, old *V, unfit []byte) (v V, how Outcome, done bool, err error) {
	g := q.guard
	t, err := g.enterRebuild(ctx, j, unfit)
	if err != nil {
		return v, "", true, unanswered(ctx, q.key, err)
	}
	w, err := q.await(ctx, t)
	if err != nil {
		return v, "", true, unanswered(ctx, q.key, err)
	}
	if old != nil {
		g.local.Forget(q.key) // it may think that is fresh
	}
	if !w.answers(q.asked, w.joined) || q.spec.mustBeJudged(&w.answer, q.asked) {
		return v, "", false, nil
	}
	v, how, err = unpack[V](w.answer, w.joined)
	return v, how, true, err
}

// bypass loads without the cache, if the call may. It shares the load with other calls that began before it. The reason says why
// Redis cannot be used; nil if it can.
func (q *query[V]) bypass(ctx context.Context, reason *RedisError) (v V, how Outcome, err error) {
	g := q.guard
	if err := q.spec.refusal(g, reason); err != nil {
		return v, "", err
	}
	j := q.job(ctx, nil, false)
	for {
		a, joined, err := g.share(ctx, j, direct, q.asked, func(ctx context.Context, publish func(answer)) answer {
			j.join(ctx)
			defer j.skip()
			switch {
			case reason == nil:
				return g.loadDirectly(ctx, j, Loaded)
			case errors.Is(reason, errBypassed):
				return g.loadDirectly(ctx, j, Bypassed)
			}
			return g.loadBypassed(ctx, j, publish)
		})
		if err != nil {
			return v, "", unanswered(ctx, j.key, err)
		}
		if a.answers(q.asked, joined) {
			return unpack[V](a, joined)
		}
		// It had begun before this call did. The next one begins now.
	}
}

// awaitStored waits until what this Guard is storing for the key is stored. It returns the error of a Fetch that may not load.
func (q *query[V]) awaitStored(ctx context.Context, storing <-chan struct{}) error {
	if storing != nil {
		select {
		case <-storing:
			return nil
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return ended(ctx, q.key)
	}
	return ErrNotCached
}

// admit refuses calls that cannot be answered.
func admit(ctx context.Context, g *Guard, key string, hasLoad bool) error {
	switch {
	case key == "":
		return errEmptyKey
	case !hasLoad:
		return fmt.Errorf("cacheguard: get %q: load is nil", key)
	case loadingOf(ctx).includes(g, key):
		return fmt.Errorf("%w: %q", ErrReentrant, key)
	case ctx.Err() != nil:
		return ended(ctx, key)
	}
	return nil
}

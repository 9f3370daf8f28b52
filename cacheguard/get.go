package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/run/errs"
)

// maxAsks is how often a call asks again because the answer it shared was older than itself, before it loads by itself.
const maxAsks = 3

// Get returns the value of the key: from the cache, or from load, which runs once for all callers, on all instances,
// that ask while it runs. Callers share one value: do not change it. Without Redis, Get loads, unless Config.FailClosed
// is set.
//
// The loader's context has the values of the first caller's. It ends when the last caller has left, after LoadTimeout,
// and when the Guard is closed. Of what load returns,
//
//   - a value goes to all that wait, even if it cannot be stored;
//   - ErrNotFound goes to all that wait, and is remembered for NegativeTTL;
//   - another error goes as it is to the callers here, and as a *LoadError to those elsewhere; it is remembered for
//     a moment (Config.FailureTTL);
//   - a panic becomes a *PanicError.
//
// When ctx ends, Get returns an error that matches ctx.Err() and the context's cause; the load goes on for others.
func Get[V any](ctx context.Context, g *Guard, key string, load func(context.Context) (V, error)) (V, error) {
	if g == nil {
		var none V
		return none, errNilGuard
	}
	spec := specOf[V](&g.ordinary)
	spec.loader = load
	v, _, err := ask(ctx, g, key, &spec, nil)
	return v, err
}

// query is a Get, a Fetch or a GetMany under way.
type query[V any] struct {
	guard *Guard
	spec  loadSpec[V] // for a Get or a Fetch with its key
	asked uint64      // the tick of the Guard's clock when the call began
}

// retrieve answers a Get or a Fetch: from the local tier, from Redis, or with a load.
func retrieve[V any](ctx context.Context, g *Guard, key string, spec *loadSpec[V], complete func()) (v V, how Outcome, err error) {
	within := loadingOf(ctx)
	if err := admit(ctx, within, g, key, complete != nil || spec.loader != nil || spec.reload != nil || spec.cacheOnly); err != nil {
		return v, "", err
	}
	if within != nil {
		spec.skipLocal = true // what is made of it may outlive Local.MaxLag
	}
	var w way
	w.look(ctx, g, key)
	kept, ok := spec.tryLocal(g, key, &w)
	if ok && kept.drawn == nil {
		return kept.result()
	}
	if complete != nil {
		complete()
	}
	if ok {
		g.refresh(ctx, spec.loadOf(g, key, scopeOf(ctx, g), nil), kept.drawn.Head, kept.drawn.Took)
		return kept.result()
	}
	q := query[V]{guard: g, spec: *spec, asked: g.clock.Now()}
	q.spec.key, q.spec.valueKey = key, spec.valueKeyOf(g, key)
	if w.isPast() {
		return q.bypass(ctx, w.reason)
	}
	return q.ask(ctx, w.past)
}

// ask asks Redis: for the value and the lease at once where that is expected to miss, and a read would not have a load
// beside it.
func (q *query[V]) ask(ctx context.Context, past write.Past) (v V, how Outcome, err error) {
	if q.spec.loader != nil && q.guard.local == nil && !past.Any() && q.guard.expected.Expected() && !q.guard.isSlow(q.spec.key) {
		if v, how, done, err := q.awaitRebuild(ctx, q.loadOf(ctx, q.spec.key, nil), nil); done {
			return v, how, err
		}
	}
	return q.read(ctx, past)
}

// read reads the entry from Redis, and does what decide says. It reads again if a load that the call joined was older
// than the call.
func (q *query[V]) read(ctx context.Context, past write.Past) (v V, how Outcome, err error) {
	g, hedge := q.guard, hedging[V]{query: q}
	defer hedge.leave()
	for range maxAsks + 1 {
		r := wanted[V]{key: q.spec.key, valueKey: q.spec.valueKey, past: past}
		var storing <-chan struct{} // looked for before the read, which sees anything stored before this
		if q.spec.cacheOnly {
			storing = g.beingStored(r.key, protocol.ShapeOf[V]{})
		}
		q.mark(&r)
		if r.read, err = g.link.Ask(ctx, r.valueKey, r.epochs.Keys()...); err != nil {
			return v, "", unanswered(ctx, r.key, err)
		}
		if v, how, done, err := hedge.await(ctx, &r, r.read); done {
			return v, how, err
		}
		g.expected.Found(r.read.Raw != nil || r.read.Err != nil)
		q.take(ctx, &r, nil)
		if more := r.epochs.Lacking(); more != nil {
			if v, how, done, err := hedge.await(ctx, &r, more); done {
				return v, how, err
			}
		}
		if err := q.judge(ctx, &r); err != nil {
			return v, "", unanswered(ctx, r.key, err)
		}
		if a, done := hedge.answer(ctx, r.action); done {
			return unpack[V](a)
		}
		hedge.leave()
		if v, how, done, err := q.act(ctx, &r, storing); done {
			return v, how, err
		}
	}
	return q.bypass(ctx, nil)
}

// act does what decide says. Not done: the call reads again.
func (q *query[V]) act(ctx context.Context, r *wanted[V], storing <-chan struct{}) (v V, how Outcome, done bool, err error) {
	if q.spec.noted != nil {
		*q.spec.noted = r.result.entry.Stamp
	}
	switch {
	case r.action == doServe:
		v, how, err = r.found.result()
	case r.action == doRefresh && r.how == Stale && q.spec.isPatient():
		v, how, err = q.awaitFresh(ctx, q.replacing(ctx, r, nil), r.result, r.read.Raw)
	case r.action == doRefresh:
		if !q.spec.cacheOnly {
			q.guard.refresh(ctx, q.replacing(ctx, r, nil), r.read.Raw, r.result.entry.Took)
		}
		v, how, err = r.found.result()
	case r.action == doBypass, r.action == doLoadApart && !q.spec.cacheOnly:
		v, how, err = q.bypass(ctx, r.reason)
	case q.spec.cacheOnly:
		err = q.awaitStored(ctx, storing)
		return v, "", err != nil, err
	default:
		var done bool
		if v, how, done, err = q.awaitRebuild(ctx, q.replacing(ctx, r, nil), r.read.Raw); r.value != nil {
			q.guard.local.Forget(r.key) // it may think that is fresh
		}
		return v, how, done, err
	}
	return v, how, true, err
}

// loadOf is what a flight of the key has to do: with the others of its batch, if it has one.
func (q *query[V]) loadOf(ctx context.Context, key string, b *batch) *load {
	return q.spec.loadOf(q.guard, key, scopeOf(ctx, q.guard), nil).in(b)
}

// replacing is what a flight has to do that replaces what was read.
func (q *query[V]) replacing(ctx context.Context, r *wanted[V], b *batch) *load {
	j := q.spec.loadOf(q.guard, r.key, scopeOf(ctx, q.guard), r.value).in(b)
	if j.aged = r.aged; r.drawn == nil { // else nobody has asked for epochs
		epochs := r.epochs // a copy, as the call's own is no part of the heap
		j.epochs = &epochs
	}
	return j
}

// awaitRebuild waits for the load of a value that the read did not find, or found to be unfit. Not done: what the load
// returned is no answer to this call.
func (q *query[V]) awaitRebuild(ctx context.Context, j *load, unfit []byte) (v V, how Outcome, done bool, err error) {
	t, err := q.guard.enterRebuild(ctx, j, unfit)
	if err != nil {
		return v, "", true, unanswered(ctx, j.key, err)
	}
	a, err := q.guard.awaitTicket(ctx, t, j.key, q.asked, nil)
	if err != nil {
		return v, "", true, unanswered(ctx, j.key, err)
	}
	if !a.answers(q.asked) || q.spec.mustBeJudged(&a, q.asked) {
		return v, "", false, nil
	}
	v, how, err = unpack[V](a)
	return v, how, true, err
}

// bypass loads without the cache, if the call may. It shares the load with other calls that began before it. The reason
// says why Redis cannot be used; nil if it can.
func (q *query[V]) bypass(ctx context.Context, reason *RedisError) (v V, how Outcome, err error) {
	g := q.guard
	if past := q.spec.past; past != nil && reason != nil {
		past.wanted.Store(errors.Is(reason, errBypassed))
		past.is.Store(true)
	}
	if err := q.spec.refusal(g, reason); err != nil {
		return v, "", err
	}
	for j := q.loadOf(ctx, q.spec.key, nil); ; {
		t, err := g.enterDirect(ctx, j, reason)
		var a answer
		if err == nil {
			a, err = g.awaitTicket(ctx, t, j.key, q.asked, nil)
		}
		if err != nil {
			return v, "", unanswered(ctx, j.key, err)
		}
		if a.answers(q.asked) {
			return unpack[V](a)
		}
		// It had begun before this call did. The next one begins now.
	}
}

// awaitStored waits until what this Guard is storing for the key is stored. It returns the error of a Fetch that may
// not load.
func (q *query[V]) awaitStored(ctx context.Context, storing <-chan struct{}) error {
	if storing != nil {
		select {
		case <-storing:
			return nil
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return ended(ctx, "get", q.spec.key)
	}
	return ErrNotCached
}

// admit refuses calls that cannot be answered.
func admit(ctx context.Context, within *loading, g *Guard, key string, hasLoad bool) error {
	switch {
	case key == "":
		return errEmptyKey
	case !hasLoad:
		return fmt.Errorf("cacheguard: get %q: load is nil", errs.Short(key))
	case within.includes(g, key):
		return fmt.Errorf("%w: %q", ErrReentrant, errs.Short(key))
	case ctx.Err() != nil:
		return ended(ctx, "get", key)
	}
	return nil
}

// ask retrieves the value of a Get or a Fetch, and reports the answer: to its task, and to Observers, for whom absence
// is ErrNotFound.
//
// Complete adds to the spec what costs an allocation, and is needed only if the local tier has no answer; nil: nothing
// lacks.
func ask[V any](ctx context.Context, g *Guard, key string, spec *loadSpec[V], complete func()) (v V, how Outcome, err error) {
	var start time.Time
	if g.observers.wantAnswers() && !spec.part {
		start = time.Now()
	}
	within, end := g.cfg.Hooks.begin(ctx, TaskGet, key)
	v, how, err = retrieve(within, g, key, spec, complete)
	end(End{Outcome: how, Err: err})
	g.answered(ctx, spec.policy, key, how, start, err)
	if g.rehearsal != nil {
		v = handOut(g, spec, key, v, err)
	}
	return v, how, spec.policy.absence(key, err)
}

// awaitFresh waits for the load that is to replace a stale value, for as long as Patience, and then returns the stale
// one. The load belongs to nobody, so it goes on. It takes a slot that no other load waits for: those have callers with
// nothing.
func (q *query[V]) awaitFresh(ctx context.Context, j *load, old *readResult[V], raw []byte) (v V, how Outcome, err error) {
	g := q.guard
	if j.scope.isTransactions() {
		return q.bypass(ctx, nil)
	}
	j.scope.nested, j.spare, j.free = false, true, true
	within, cancel := context.WithTimeout(ctx, j.policy.patience)
	defer cancel()
	t, err := g.enterRebuild(outsideLoads(within), j, raw)
	var a answer
	if err == nil {
		a, err = g.awaitTicket(outsideLoads(within), t, j.key, q.asked, nil)
	}
	switch {
	case err == nil && a.answers(q.asked) && (a.err == nil || a.absent || errors.Is(a.err, ErrClosed)):
		return unpack[V](a)
	case ctx.Err() != nil, err != nil && within.Err() == nil:
		return v, "", unanswered(ctx, j.key, err)
	}
	g.onStale(j.key, old.entry)
	return old.result()
}

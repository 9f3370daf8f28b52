package cacheguard

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/redis/slab"
	"github.com/cacheguard/go/internal/run/errs"
)

// GetMany is Get for several keys. It calls load once, within MaxLoads, for those that are not in the cache and that
// nobody is loading on any instance. A key that is listed twice counts once.
//
//   - A key that load does not return is absent from the result, without an error, and remembered as absent for
//     NegativeTTL. Keys that it returns unasked are ignored.
//   - The error joins a *KeyError for each key that failed; the result has the others.
//   - If load returns an error, each of its keys gets it. If that is ErrNotFound, they are absent.
func GetMany[V any](ctx context.Context, g *Guard, keys []string,
	load func(ctx context.Context, missing []string) (map[string]V, error),
) (map[string]V, error) {
	if g == nil {
		return nil, errNilGuard
	}
	if load == nil {
		return nil, errors.New("cacheguard: get many: load is nil")
	}
	spec := specOf[V](&g.ordinary)
	spec.loadMany = loadAny(load)
	return getMany(ctx, g, keys, spec)
}

// getMany is GetMany for the keys and the loader of a Cache.
func getMany[V any](ctx context.Context, g *Guard, keys []string, spec loadSpec[V]) (map[string]V, error) {
	ctx, end := g.cfg.Hooks.beginMany(ctx, TaskGetMany, keys)
	m := &many[V]{query: query[V]{guard: g, spec: spec}, start: time.Now(), found: make(map[string]V, len(keys))}
	m.run(ctx, keys)
	err := errs.Join(m.errs...)
	end(End{Err: err})
	return m.found, err
}

// many is a GetMany under way: what a Get does for its key, it does for all of them, with one request.
type many[V any] struct {
	query[V]

	start time.Time
	found map[string]V
	errs  []error

	counts func(how Outcome, err error) // hears of each key, instead of those who hear of callers; nil: a caller wants the keys
	again  map[string]bool              // with counts: keys whose first load was rejected
}

// run gets the keys.
func (m *many[V]) run(ctx context.Context, keys []string) {
	rest := m.admit(ctx, keys)
	m.asked = m.guard.clock.Now()
	for asks := 0; len(rest) > 0; asks++ {
		rest = m.load(ctx, m.read(ctx, rest, asks <= maxAsks))
	}
}

// admit returns the keys that can be asked for, each once.
func (m *many[V]) admit(ctx context.Context, keys []string) []string {
	admitted, seen, within := make([]string, 0, len(keys)), make(map[string]bool, len(keys)), loadingOf(ctx)
	m.spec.skipLocal = m.spec.skipLocal || within != nil // as in a Get
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		if err := admit(ctx, within, m.guard, key, true); err != nil {
			m.fail(ctx, key, "", err)
			continue
		}
		admitted = append(admitted, key)
	}
	return admitted
}

// window is how many keys a GetMany asks for at a time, while it looks at as many others: what it holds stays small
// however many keys it has, and other calls' reads go between its own.
const window = 1024

// read reads the keys, if it may, and returns those that must be loaded. It refreshes stale ones in the background.
func (m *many[V]) read(ctx context.Context, keys []string, may bool) (toLoad []*wanted[V]) {
	var asked, old []*wanted[V]
	room := &slab.Slab[wanted[V]]{Left: len(keys)}
	for some := range slices.Chunk(keys, window) {
		next := make([]*wanted[V], 0, len(some))
		for _, key := range some {
			w, kept, local := way{}, found[V]{}, false
			if may {
				w.look(ctx, m.guard, key)
				kept, local = m.spec.tryLocal(m.guard, key, &w)
			}
			if local {
				if m.serve(ctx, key, kept); kept.drawn == nil {
					continue
				}
			}
			r := room.New()
			r.key, r.past, r.reason, r.drawn = key, w.past, w.reason, kept.drawn
			switch {
			case local:
				old = append(old, r)
			case !may || w.isPast():
				toLoad = m.bypass(ctx, r, toLoad)
			case m.guard.isSlow(key) && m.spec.mayHedge(ctx, m.guard, key):
				r.action = doLoadFirst
				toLoad = append(toLoad, r)
			default:
				next = append(next, r)
			}
		}
		m.ask(ctx, next)
		toLoad, old = m.settle(ctx, asked, toLoad, old)
		asked = next
	}
	toLoad, old = m.settle(ctx, asked, toLoad, old)
	m.refresh(ctx, old)
	return toLoad
}

// settle waits for keys that were asked for, and serves those that it may.
func (m *many[V]) settle(ctx context.Context, asked, toLoad, old []*wanted[V]) (_, _ []*wanted[V]) {
	room := &slab.Slab[readResult[V]]{Left: len(asked)}
	for _, r := range asked {
		if m.await(ctx, r, r.read); r.err == nil {
			m.take(ctx, r, room)
		}
	}
	for _, r := range asked {
		if more := r.epochs.Lacking(); more != nil {
			m.await(ctx, r, more) // it is asked for already, as are the others'
		}
		if r.err == nil {
			r.err = m.judge(ctx, r)
		}
		if r.err == nil && r.action == doRefresh {
			old = append(old, r)
		}
		switch {
		case r.err != nil:
			m.fail(ctx, r.key, "", unanswered(ctx, r.key, r.err))
		case r.action == doServe, r.action == doRefresh:
			m.serve(ctx, r.key, r.found)
		case r.action == doRebuild:
			toLoad = append(toLoad, r)
		default:
			toLoad = m.bypass(ctx, r, toLoad)
		}
	}
	return toLoad, old
}

// ask asks for the keys with one request.
func (m *many[V]) ask(ctx context.Context, all []*wanted[V]) {
	questions := make([]send.Question, len(all))
	for i, r := range all {
		r.valueKey = m.spec.valueKeyOf(m.guard, r.key)
		m.mark(r)
		questions[i] = send.Question{Key: r.valueKey, Beside: r.epochs.Keys()}
	}
	for i, read := range m.guard.link.AskAll(ctx, questions) {
		all[i].read = read
	}
}

// await waits for a read of the key.
func (m *many[V]) await(ctx context.Context, r *wanted[V], read *send.Read) {
	late := false
	if r.err = send.ErrClosed; read != nil {
		late, r.err = read.WaitLate(ctx)
	}
	if late {
		r.err = m.spec.waitLate(ctx, m.guard, r.key, read)
	}
	if errors.Is(r.err, errLate) {
		r.read, r.result, r.err = &send.Read{Err: errLate}, &readResult[V]{state: unreachable}, nil
	}
}

// bypass has the key loaded without the cache, unless the call may not do that.
func (m *many[V]) bypass(ctx context.Context, r *wanted[V], toLoad []*wanted[V]) []*wanted[V] {
	if err := m.spec.refusal(m.guard, r.reason); err != nil {
		m.fail(ctx, r.key, "", err)
		return toLoad
	}
	r.action = doBypass
	return append(toLoad, r)
}

// serve takes what was found.
func (m *many[V]) serve(ctx context.Context, key string, f found[V]) {
	v, how, err := f.result()
	m.answer(ctx, key, v, how, err, err != nil)
}

func (m *many[V]) answer(ctx context.Context, key string, v V, how Outcome, err error, absent bool) {
	if err != nil && !absent {
		m.fail(ctx, key, how, err)
		return
	}
	if err == nil && m.found != nil {
		if m.guard.rehearsal != nil {
			v = handOut(m.guard, &m.spec, key, v, nil)
		}
		m.found[key] = v
	}
	m.tell(ctx, key, how, err)
}

func (m *many[V]) fail(ctx context.Context, key string, how Outcome, err error) {
	m.errs = append(m.errs, &KeyError{Key: key, Err: err})
	m.tell(ctx, key, how, err)
}

func (m *many[V]) tell(ctx context.Context, key string, how Outcome, err error) {
	if m.counts != nil {
		m.counts(how, err)
		return
	}
	m.guard.answered(ctx, m.spec.policy, key, how, m.start, err)
}

func keysOf[V any](all []*wanted[V]) []string {
	keys := make([]string, len(all))
	for i, r := range all {
		keys[i] = r.key
	}
	return keys
}

package cacheguard

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/gather"
	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/run/errs"
)

// GetMany returns the values of the keys. It takes what it can from the cache, and calls load once for the keys that
// nobody is loading on any instance. For keys that others are loading, it waits as Get does. Everything said of Get holds
// for each key, and Hooks are called for each.
//
//   - A key that is neither in the cache nor in load's result is absent from the result, without an error. Its absence
//     is remembered for NegativeTTL.
//   - The error joins a *KeyError for each key that failed; the result still has the others.
//   - If load returns an error, its map is ignored, and each key that it was called with gets the error. If the
//     error is ErrNotFound, these keys are absent.
//   - GetMany ignores keys that load returns unasked. A key that is listed twice counts once.
//   - SetTTL applies to all keys of a call of load. The call takes one of MaxLoads.
func GetMany[V any](ctx context.Context, g *Guard, keys []string,
	load func(ctx context.Context, missing []string) (map[string]V, error),
) (map[string]V, error) {
	if g == nil {
		return nil, errNilGuard
	}
	if load == nil {
		return nil, errors.New("cacheguard: get many: load is nil")
	}
	return getMany(ctx, g, keys, loadSpec[V]{loadMany: load})
}

// many is a GetMany under way.
type many[V any] struct {
	guard *Guard
	spec  loadSpec[V]
	start time.Time
	asked uint64
	found map[string]V
	errs  []error

	counts func(how Outcome, err error) // hears of each key, instead of those who hear of callers; nil: a caller wants the keys
}

// wanted is a key that is not in the cache.
type wanted struct {
	key   string
	mode  mode
	how   Outcome       // direct: what to call it
	aged  bool          // that seems too old
	unfit []byte        // filled: what the cache has; background: what is to be replaced
	took  time.Duration // background: how long the last load took

	epochs *epoch.Reading // from before the key was read
}

// admit returns the keys that can be asked for, each once.
func (m *many[V]) admit(ctx context.Context, keys []string) []string {
	admitted, seen := make([]string, 0, len(keys)), make(map[string]bool, len(keys))
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		if err := admit(ctx, m.guard, key, true); err != nil {
			m.fail(ctx, key, "", err)
			continue
		}
		admitted = append(admitted, key)
	}
	return admitted
}

// unread loads the keys without reading them, if the call may.
func (m *many[V]) unread(ctx context.Context, keys []string) (all []wanted) {
	for _, key := range keys {
		if w := (wanted{key: key}); m.bypass(ctx, &w, nil) {
			all = append(all, w)
		}
	}
	return all
}

// loadAll makes a flight for each key, or joins the one there is, and one batch for all.
func (m *many[V]) loadAll(ctx context.Context, toLoad []wanted) (rest []string) {
	if len(toLoad) == 0 {
		return nil
	}
	nested := loadingOf(ctx).within(m.guard)
	b, err := m.newBatch(ctx, toLoad, nested)
	if err != nil {
		for _, w := range toLoad {
			m.fail(ctx, w.key, "", unanswered(ctx, w.key, err))
		}
		return nil
	}
	tickets := make([]ticket, len(toLoad))
	for i, w := range toLoad {
		j := m.job(ctx, b, w, nested)
		tickets[i], err = m.guard.flights.Enter(ctx, j.flight(w.mode), m.flight(j, w))
		if err != nil || tickets[i].Joined {
			j.skip()
		}
		if err != nil {
			m.fail(ctx, w.key, "", unanswered(ctx, w.key, err))
			toLoad[i].key = "" // no ticket
		}
	}
	for i, got := range m.awaitAll(ctx, toLoad, tickets) {
		switch w := toLoad[i]; {
		case w.key == "":
		case got.err != nil:
			m.fail(ctx, w.key, "", unanswered(ctx, w.key, got.err))
		case got.answers(m.asked, got.joined):
			m.takeWon(ctx, w.key, got.won)
		default:
			rest = append(rest, w.key)
		}
	}
	return rest
}

// takeWon takes what a load has answered.
func (m *many[V]) takeWon(ctx context.Context, key string, w won) {
	v, how, err := unpack[V](w.answer, w.joined)
	m.take(ctx, key, v, how, err, w.absent)
}

// flight is the run of the key's flight.
func (m *many[V]) flight(j *job, w wanted) flight.Run[answer] {
	return func(ctx context.Context, publish func(answer)) answer {
		defer j.skip()
		if w.mode == direct {
			return m.guard.loadDirectly(ctx, j, w.how)
		}
		return m.guard.newRebuild(j, w.unfit, publish).run(ctx)
	}
}

func (m *many[V]) job(ctx context.Context, b *batch, w wanted, nested bool) *job {
	of := scopeOf(ctx, m.guard)
	of.nested = nested
	j := m.spec.jobOf(m.guard, w.key, of, func(ctx context.Context) (any, error) { return b.obtain(ctx, gather.Member{Key: w.key}) })
	j.aged, j.batch, j.epochs = w.aged, b, w.epochs
	if m.spec.tagsEach != nil {
		j.tags = func(v any) []string { return m.spec.tagsEach(w.key, valueOf[V](v)) }
	}
	if m.spec.loadEach != nil {
		j.load = untyped(func(ctx context.Context) (V, error) { return m.spec.loadEach(ctx, w.key) })
	}
	return j
}

// newBatch waits for a slot, and makes the batch of the keys. Keys that are loaded one by one have no batch: each takes a
// slot of its own.
func (m *many[V]) newBatch(ctx context.Context, toLoad []wanted, nested bool) (*batch, error) {
	if m.spec.loadEach != nil {
		return nil, nil //nolint:nilnil // what a job without a batch has
	}
	p := m.spec.policyOf(m.guard)
	s, err := m.guard.loaders.takePermit(ctx, limit.Need{Borrows: nested, Spare: m.spec.spare, Kind: p.loadSlots()})
	if err != nil {
		return nil, err
	}
	return m.batchIn(ctx, toLoad, s), nil
}

// batchIn makes the batch of the keys, which has the slot.
func (m *many[V]) batchIn(ctx context.Context, of []wanted, s limit.Slot) *batch {
	b := &batch{guard: m.guard, policy: m.spec.policyOf(m.guard), load: m.loadAny}
	return b.open(ctx, 0, func(context.Context) (limit.Slot, error) { return s, nil }, names(of)...)
}

// refreshAll replaces stale entries in the background, in one batch, if a loader may run.
func (m *many[V]) refreshAll(ctx context.Context, old []wanted) {
	if len(old) == 0 {
		return
	}
	if m.guard.loaders.limits.Fleet == nil {
		m.refreshSome(ctx, old)
		return
	}
	ctx = context.WithoutCancel(ctx)
	m.guard.life.Try(func() { m.refreshSome(ctx, old) }) // it may ask Redis for a permit; stop: RedisTimeout
}

func (m *many[V]) refreshSome(ctx context.Context, old []wanted) {
	var b *batch
	if m.spec.loadEach == nil {
		p := m.spec.policyOf(m.guard)
		s := m.guard.loaders.limits.Try(ctx, limit.Need{Spare: true, Kind: p.loadSlots()})
		if s.IsNone() {
			return
		}
		b = m.batchIn(outsideLoads(ctx), old, s)
	}
	for _, w := range old {
		m.guard.refresh(ctx, m.job(ctx, b, w, false), w.unfit, w.took)
	}
}

// loadAny is the caller's load, with values as they travel.
func (m *many[V]) loadAny(ctx context.Context, of []gather.Member) (map[string]any, error) {
	keys := make([]string, len(of))
	for i, member := range of {
		keys[i] = member.Key
	}
	values, err := m.spec.loadMany(ctx, keys)
	pointers := make(map[string]any, len(values))
	for key, v := range values {
		pointers[key] = &v
	}
	return pointers, err
}

func (m *many[V]) take(ctx context.Context, key string, v V, how Outcome, err error, absent bool) {
	if err != nil && !absent {
		m.fail(ctx, key, how, err)
		return
	}
	if err == nil && m.found != nil {
		m.found[key] = v
		if m.guard.rehearsal != nil {
			m.found[key] = handOut(m.guard, &m.spec, key, v, nil)
		}
	}
	if m.guard.samples && m.counts == nil {
		sample(ctx, m.guard, m.spec, key, v, how, err)
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
	m.guard.countAnswer(m.spec.policy, key, how, err)
	if m.guard.cfg.Hooks.OnGet != nil {
		m.guard.cfg.Hooks.OnGet(ctx, key, how, time.Since(m.start), err)
	}
}

func names(all []wanted) []string {
	keys := make([]string, len(all))
	for i, w := range all {
		keys[i] = w.key
	}
	return keys
}

// getMany is GetMany for the keys and the loader of a Cache.
func getMany[V any](ctx context.Context, g *Guard, keys []string, spec loadSpec[V]) (map[string]V, error) {
	ctx, end := g.cfg.Hooks.beginMany(ctx, TaskGetMany, keys)
	m := &many[V]{guard: g, spec: spec, start: time.Now(), found: make(map[string]V, len(keys))}
	m.run(ctx, keys)
	err := errs.Join(m.errs...)
	end(End{Err: err})
	return m.found, err
}

// run gets the keys.
func (m *many[V]) run(ctx context.Context, keys []string) {
	rest := m.admit(ctx, keys)
	m.asked = m.guard.clock.Now()
	for asks := 0; len(rest) > 0; asks++ {
		if asks <= maxAsks {
			rest = m.loadAll(ctx, m.readKeys(ctx, rest))
		} else {
			rest = m.loadAll(ctx, m.unread(ctx, rest))
		}
	}
}

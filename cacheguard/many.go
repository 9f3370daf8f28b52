package cacheguard

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/flight"
	"github.com/cacheguard/go/internal/protocol"
)

// GetMany returns the values of the keys: those it finds in the cache, and the others from load, which is called once
// with the keys that nobody else, on any instance, is loading at the moment; for those, it waits as Get does.
//
// A key that is neither in the cache nor in what load returns is not found: it is absent from the result, without an
// error, and remembered for NegativeTTL. The error joins one *KeyError for each key that could not be had; the result has
// the others all the same. An error of load is that of all keys it was called with, unless it is ErrNotFound. Keys that
// load returns without having been asked for are ignored. A key asked for twice counts once.
//
// Otherwise all that is said of Get holds for each key. Hooks are called for each key. SetTTL counts for all keys of a
// call of load. A call of load takes one of MaxLoads.
func GetMany[V any](ctx context.Context, g *Guard, keys []string,
	load func(ctx context.Context, missing []string) (map[string]V, error),
) (map[string]V, error) {
	if g == nil {
		return nil, errNilGuard
	}
	if load == nil {
		return nil, errors.New("cacheguard: get many: load is nil")
	}
	m := &many[V]{Guard: g, load: load, start: time.Now(), found: make(map[string]V, len(keys))}
	rest := m.admit(ctx, keys)
	m.asked = g.clock.Now()
	for asks := 0; len(rest) > 0; asks++ {
		if asks <= maxAsks {
			rest = m.loadAll(ctx, m.look(ctx, rest))
		} else {
			rest = m.loadAll(ctx, unread(rest))
		}
	}
	return m.found, errors.Join(m.errs...)
}

// many is a GetMany under way.
type many[V any] struct {
	*Guard
	load  func(context.Context, []string) (map[string]V, error)
	start time.Time
	asked uint64
	found map[string]V
	errs  []error
}

// wanted is a key that is not in the cache.
type wanted struct {
	key   string
	mode  mode
	how   Outcome       // direct: what to call it
	aged  bool          // that seems too old
	unfit []byte        // filled: what the cache has; background: what is to be replaced
	took  time.Duration // background: how long the last load took
}

// admit returns the keys that can be asked for, each once.
func (m *many[V]) admit(ctx context.Context, keys []string) []string {
	admitted, seen := make([]string, 0, len(keys)), make(map[string]bool, len(keys))
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		if err := admit(ctx, m.Guard, key, true); err != nil {
			m.fail(ctx, key, "", err)
			continue
		}
		admitted = append(admitted, key)
	}
	return admitted
}

// unread returns the keys as to be loaded without looking.
func unread(keys []string) []wanted {
	all := make([]wanted, len(keys))
	for i, key := range keys {
		all[i] = wanted{key: key, mode: direct, how: Loaded}
	}
	return all
}

// loadAll makes a flight for each key, or joins the one there is, and one batch for all.
func (m *many[V]) loadAll(ctx context.Context, missing []wanted) (rest []string) {
	if len(missing) == 0 {
		return nil
	}
	nested := loadingOf(ctx).within(m.Guard)
	s, err := m.takeSlot(ctx, &job{nested: nested})
	if err != nil {
		for _, w := range missing {
			m.fail(ctx, w.key, "", m.ended(ctx, w.key, err))
		}
		return nil
	}
	b := newBatch(ctx, m.Guard, names(missing), s, m.loadAny)
	tickets := make([]flight.Ticket[flightKey, answer], len(missing))
	for i, w := range missing {
		j := m.job(b, w, nested)
		tickets[i], err = m.flights.Enter(ctx, j.flight(w.mode), m.flight(j, w))
		if err != nil || tickets[i].Joined {
			b.pass(w.key)
		}
		if err != nil {
			m.fail(ctx, w.key, "", m.ended(ctx, w.key, err))
			missing[i].key = "" // no ticket
		}
	}
	for i, w := range missing {
		if w.key == "" {
			continue
		}
		switch a, err := tickets[i].Wait(ctx, m.acceptable(tickets[i].Joined)); {
		case err != nil:
			m.fail(ctx, w.key, "", m.ended(ctx, w.key, err))
		case a.answers(m.asked, tickets[i].Joined):
			v, how, err := result[V](a, tickets[i].Joined)
			m.take(ctx, w.key, v, how, err, a.absent)
		default:
			rest = append(rest, w.key)
		}
	}
	return rest
}

// acceptable tells which first result of a flight is good for the call.
func (m *many[V]) acceptable(joined bool) func(answer) bool {
	return func(a answer) bool { return a.answers(m.asked, joined) }
}

// flight is the run of the key's flight.
func (m *many[V]) flight(j *job, w wanted) flight.Run[answer] {
	return func(ctx context.Context, publish func(answer)) answer {
		defer j.pass()
		if w.mode == direct {
			return m.loadDirectly(ctx, j, w.how)
		}
		return m.newMissed(j, w.unfit, publish).fly(ctx)
	}
}

func (m *many[V]) job(b *batch, w wanted, nested bool) *job {
	j := &job{
		key: w.key, valueKey: m.redisKey(w.key), shape: protocol.ShapeOf[V]{}, nested: nested,
		writing: updateOf(b.ctx).includes(m.Guard, w.key), aged: w.aged, batch: b,
	}
	j.load = func(ctx context.Context) (any, error) { return b.obtain(ctx, w.key) }
	return j
}

// refreshAll replaces stale entries in the background, in one batch, if a loader may run.
func (m *many[V]) refreshAll(ctx context.Context, old []wanted) {
	if len(old) == 0 {
		return
	}
	s := m.trySlot(new(job))
	if s == noSlot {
		return
	}
	b := newBatch(outsideLoads(ctx), m.Guard, names(old), s, m.loadAny)
	for _, w := range old {
		m.refresh(ctx, m.job(b, w, false), w.unfit, w.took)
	}
}

// loadAny is the caller's load, with values as they travel.
func (m *many[V]) loadAny(ctx context.Context, keys []string) (map[string]any, error) {
	loaded, err := m.load(ctx, keys)
	values := make(map[string]any, len(loaded))
	for key, v := range loaded {
		values[key] = &v
	}
	return values, err
}

func (m *many[V]) take(ctx context.Context, key string, v V, how Outcome, err error, absent bool) {
	if err != nil && !absent {
		m.fail(ctx, key, how, err)
		return
	}
	if err == nil {
		m.found[key] = v
	}
	m.tell(ctx, key, how, err)
}

func (m *many[V]) fail(ctx context.Context, key string, how Outcome, err error) {
	m.errs = append(m.errs, &KeyError{Key: key, Err: err})
	m.tell(ctx, key, how, err)
}

func (m *many[V]) tell(ctx context.Context, key string, how Outcome, err error) {
	if m.cfg.Hooks.OnGet != nil {
		m.cfg.Hooks.OnGet(ctx, key, how, time.Since(m.start), err)
	}
}

func names(all []wanted) []string {
	keys := make([]string, len(all))
	for i, w := range all {
		keys[i] = w.key
	}
	return keys
}

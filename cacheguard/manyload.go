package cacheguard

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/cache/gather"
	"github.com/cacheguard/go/internal/cache/limit"
)

// load makes a flight for each key, or joins the one there is, and one batch for all.
func (m *many[V]) load(ctx context.Context, all []*wanted[V]) (rest []string) {
	if len(all) == 0 {
		return nil
	}
	b, err := m.newBatch(ctx, all)
	if err != nil {
		for _, r := range all {
			m.fail(ctx, r.key, "", unanswered(ctx, r.key, err))
		}
		return nil
	}
	keys, tickets := make([]string, 0, len(all)), make([]ticket, 0, len(all))
	for _, r := range all {
		t, err := m.enter(ctx, r, b)
		if err != nil {
			m.fail(ctx, r.key, "", unanswered(ctx, r.key, err))
			continue
		}
		keys, tickets = append(keys, r.key), append(tickets, t)
	}
	for i, got := range m.awaitAll(ctx, keys, tickets) {
		switch key := keys[i]; {
		case got.err != nil:
			m.fail(ctx, key, "", unanswered(ctx, key, got.err))
		case m.counts != nil && got.unstored != nil:
			rest = m.unstored(ctx, key, got.answer, rest)
		case got.answers(m.asked):
			m.takeWon(ctx, key, got.answer)
		default:
			rest = append(rest, key)
		}
	}
	return rest
}

// unstored adds the key to the rest if its load was rejected for the first time: its tags are known by now.
func (m *many[V]) unstored(ctx context.Context, key string, a answer, rest []string) []string {
	if errors.Is(a.unstored, errRejected) && !m.again[key] {
		m.again[key] = true
		return append(rest, key)
	}
	m.fail(ctx, key, a.outcome, a.unstored)
	return rest
}

func (m *many[V]) enter(ctx context.Context, r *wanted[V], b *batch) (ticket, error) {
	if r.action == doBypass {
		return m.guard.enterDirect(ctx, m.loadOf(ctx, r.key, b), r.reason)
	}
	return m.guard.enterRebuild(ctx, m.replacing(ctx, r, b), r.read.Raw)
}

// newBatch waits for a slot, and makes the batch of the keys. Where Redis is slow, the batch takes its slot once it has the leases, as a Get does. Keys
// that are loaded one by one have no batch: each takes a slot of its own.
func (m *many[V]) newBatch(ctx context.Context, all []*wanted[V]) (*batch, error) {
	if m.spec.loadEach != nil {
		return nil, nil //nolint:nilnil // what a load without a batch has
	}
	need := limit.Need{Borrows: loadingOf(ctx).within(m.guard), Spare: m.spec.spare, Kind: m.spec.policy.kind.loadSlots}
	take := func(ctx context.Context) (limit.Slot, error) { return m.guard.loaders.takePermit(ctx, need) }
	if m.guard.slowParts.Load() > 0 {
		return m.batchThatTakes(ctx, take, keysOf(all)), nil
	}
	s, err := take(ctx)
	if err != nil {
		return nil, err
	}
	return m.batchIn(ctx, s, keysOf(all)), nil
}

// batchIn makes the batch of the keys, which has the slot.
func (q *query[V]) batchIn(ctx context.Context, s limit.Slot, keys []string) *batch {
	return q.batchThatTakes(ctx, func(context.Context) (limit.Slot, error) { return s, nil }, keys)
}

func (q *query[V]) batchThatTakes(ctx context.Context, take func(context.Context) (limit.Slot, error), keys []string) *batch {
	b := &batch{guard: q.guard, policy: q.spec.policy, load: q.spec.loadMany}
	return b.open(ctx, 0, take, keys...)
}

// loadAny is the caller's load, with values as they travel.
func loadAny[V any](load func(context.Context, []string) (map[string]V, error)) batchLoad {
	return func(ctx context.Context, of []gather.Member) (map[string]any, error) {
		keys := make([]string, len(of))
		for i, member := range of {
			keys[i] = member.Key
		}
		values, err := load(ctx, keys)
		pointers := make(map[string]any, len(values))
		for key, v := range values {
			pointers[key] = &v
		}
		return pointers, err
	}
}

// refresh replaces stale entries in the background, in one batch, if a loader may run.
func (m *many[V]) refresh(ctx context.Context, old []*wanted[V]) {
	if len(old) == 0 {
		return
	}
	if m.guard.loaders.limits.Fleet == nil {
		m.refreshNow(ctx, old)
		return
	}
	ctx = context.WithoutCancel(ctx)
	m.guard.life.Try(func() { m.refreshNow(ctx, old) }) // it may ask Redis for a permit; stop: RedisTimeout
}

func (m *many[V]) refreshNow(ctx context.Context, old []*wanted[V]) {
	var b *batch
	if m.spec.loadEach == nil {
		s := m.guard.loaders.limits.Try(ctx, limit.Need{Spare: true, Kind: m.spec.policy.kind.loadSlots})
		if s.IsNone() {
			return
		}
		b = m.batchIn(outsideLoads(ctx), s, keysOf(old))
	}
	for _, r := range old {
		m.guard.refresh(ctx, m.replacing(ctx, r, b), r.read.Raw, r.result.entry.Took)
	}
}

package cacheguard

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/cache/limit"
)

// entersAtOnce is how many flights begin until others have their turn.
const entersAtOnce = 32

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
	if slices.ContainsFunc(all, func(r *wanted[V]) bool { return r.action == doLoadFirst }) {
		m.guard.journal.LoadsBeside()
	}
	tickets := make([]ticket, len(all))
	for i, r := range all {
		if tickets[i], r.err = m.enter(ctx, r, b); i%entersAtOnce == entersAtOnce-1 {
			runtime.Gosched()
		}
	}
	for i, r := range all {
		a, key, err := answer{}, r.key, r.err
		if err == nil {
			a, err = m.guard.awaitTicket(ctx, tickets[i], key, m.asked, nil)
		}
		switch {
		case err != nil:
			m.fail(ctx, key, "", unanswered(ctx, key, err))
		case m.counts != nil && a.unstored != nil:
			rest = m.unstored(ctx, key, a, rest)
		case r.action == doLoadFirst && a.err != nil && !a.absent: // Redis may have the value
			m.spec.policy.kind.cost.Failed(time.Now())
			rest = append(rest, key)
		case a.answers(m.asked):
			v, how, err := unpack[V](a)
			m.answer(ctx, key, v, how, err, a.absent)
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
	if r.action == doBypass || r.action == doLoadFirst { // that has no reason
		return m.guard.enterDirect(ctx, m.loadOf(ctx, r.key, b), r.reason)
	}
	return m.guard.enterRebuild(ctx, m.replacing(ctx, r, b), r.read.Raw)
}

// newBatch waits for a slot, and makes the batch of the keys. Keys that are loaded one by one have no batch: each takes
// a slot of its own.
func (m *many[V]) newBatch(ctx context.Context, all []*wanted[V]) (*batch, error) {
	if m.spec.loadEach != nil {
		return nil, nil //nolint:nilnil // what a load without a batch has
	}
	need := limit.Need{Borrows: loadingOf(ctx).within(m.guard), Spare: m.spec.spare, Kind: m.spec.policy.kind.loadSlots}
	s, err := m.guard.loaders.takePermit(ctx, need)
	if err != nil {
		return nil, err
	}
	return m.batchIn(ctx, s, keysOf(all)), nil
}

// batchIn makes the batch of the keys, which has the slot.
func (m *many[V]) batchIn(ctx context.Context, s limit.Slot, keys []string) *batch {
	return (&batch{guard: m.guard, policy: m.spec.policy, load: m.spec.loadMany}).open(ctx, s, keys)
}

// loadAny is the caller's load, with values as they travel.
func loadAny[V any](load func(context.Context, []string) (map[string]V, error)) batchLoad {
	return func(ctx context.Context, keys []string) (map[string]any, error) {
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
	if !m.guard.loaders.limits.MayAsk() {
		m.refreshNow(ctx, old)
		return
	}
	ctx = context.WithoutCancel(ctx)
	m.guard.life.Try(func() { m.refreshNow(ctx, old) }) // a Limiter may ask Redis; stop: RedisTimeout
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
		head, took := r.replaced()
		m.guard.refresh(ctx, m.replacing(ctx, r, b), head, took)
	}
}

package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/lease"
)

// lead loads the value and stores it. The lease is renewed meanwhile; should it be lost all the same, the load goes on:
// its callers want the value, and if nothing was written in between it may still be stored. (Were it cancelled, two
// instances with a loader slower than the lease and renewals that fail would take the lease from each other for ever.)
func (m *missed) lead(ctx context.Context, got acquired) answer {
	if got.takenOver {
		m.cfg.Hooks.takeover(m.key)
	}
	drop := m.keeper.Keep(m.leaseRenewal())
	began := m.clock.Tick()
	out := m.runLoader(ctx, m.job, m.slot)
	drop()
	switch {
	case out.err != nil && ctx.Err() != nil: // nobody waits any more
		m.inBackground(m.giveUp)
		return answer{err: closedOr(context.Cause(ctx))}
	case out.err != nil && !out.absent:
		m.rememberFailure(ctx, out)
		return answer{err: out.err, outcome: Loaded}
	}
	return m.store(ctx, out, got.generation, began)
}

// loadDirectly loads without asking Redis, and stores nothing.
func (g *Guard) loadDirectly(ctx context.Context, j *job, how Outcome) answer {
	s, err := g.takeSlot(ctx, j)
	if err != nil {
		return answer{err: err}
	}
	return g.loadIn(ctx, j, s, how)
}

// loadBypassed loads without asking Redis because that does not answer. If it does again by the time there is a slot, it
// is asked after all: the loads that have queued up in an outage would else be made by every instance, and stored by none.
func (g *Guard) loadBypassed(ctx context.Context, j *job) answer {
	breaker := g.health.Of(j.valueKey)
	wasOpen := breaker.IsOpen()
	s, err := g.takeSlot(ctx, j)
	if err != nil {
		return answer{err: err}
	}
	if wasOpen && !breaker.IsOpen() {
		m := g.newMissed(j, nil)
		m.slot, m.last = s, true
		return m.fly(ctx)
	}
	return g.loadIn(ctx, j, s, Bypassed)
}

// loadIn is loadDirectly in a slot, which it frees.
func (g *Guard) loadIn(ctx context.Context, j *job, s slot, how Outcome) answer {
	began := g.clock.Tick()
	out := g.runLoader(ctx, j, s)
	if out.err != nil && ctx.Err() != nil {
		return answer{err: closedOr(context.Cause(ctx))}
	}
	return answer{value: out.value, err: out.err, absent: out.absent, outcome: how, before: began}
}

func (m *missed) leaseRenewal() *lease.Renewal {
	return &lease.Renewal{
		Call: m.renewal(),
		TTL:  m.cfg.LeaseTTL,
		Lost: func(int) { m.cfg.Hooks.leaseLost(m.key) },
	}
}

// rememberFailure ends the lease and leaves word of the failure for the other instances.
func (m *missed) rememberFailure(ctx context.Context, out loaded) {
	m.failures.add(m.token, out.err)
	defer m.turn(ctx)()
	p := m.place(ctx, m.fail(out.text), false)
	defer p.Quit()
	_, err := bounded(ctx, m.Guard, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.Run(ctx).Err()
	}, nil)
	m.report(p, err, m.breaker.Record)
	if err != nil {
		_ = m.redisError("fail", m.key, err) // the callers get the load's error, and the lease expires
	}
}

// store stores what was loaded, and finds out for whom it is good. A load that may be stored was not overtaken by any
// write up to the moment it was sent to be stored, so it is good for all calls that began until then. One that may not
// is good only for those that began before the loader did.
func (m *missed) store(ctx context.Context, out loaded, generation string, began uint64) answer {
	a := answer{value: out.value, err: out.err, absent: out.absent, outcome: Loaded, before: began}
	f := m.prepare(ctx, out, generation)
	sent := m.clock.Tick()
	defer m.turn(ctx)()
	p := m.place(ctx, m.fill(f), len(f.tail) > maxCarried)
	defer p.Quit()
	status, err := bounded(ctx, m.Guard, func(ctx context.Context) (string, error) {
		return p.Run(ctx).Text()
	}, func(_ string, err error) {
		if err != nil {
			m.giveUp()
		}
	})
	m.report(p, err, m.breaker.Record)
	switch {
	case err != nil:
		m.inBackground(m.giveUp)
		_ = m.redisError("fill", m.key, err) // the callers get the value
	case status == "refused":
		m.cfg.Hooks.rejected(m.key)
	case status == "stored" || status == "kept":
		a.before = sent
	default:
		m.unstorable(ctx, errors.New(status))
		a.before = sent
	}
	return a
}

// prepare makes the entry. A value that cannot be stored makes none.
func (m *missed) prepare(ctx context.Context, out loaded, generation string) filling {
	f := filling{token: m.token, generation: generation}
	what, ttl, staleFor := kindAbsent, min(m.cfg.NegativeTTL, time.Duration(out.ttl)), time.Duration(0)
	var payload []byte
	if out.err == nil {
		var err error
		what, payload, err = m.shape.encode(m.cfg.Codec, out.value)
		if limit := m.cfg.MaxValueBytes; err == nil && limit > 0 && len(payload) > limit {
			err = fmt.Errorf("its %d bytes are more than MaxValueBytes (%d)", len(payload), limit)
		}
		if err != nil {
			m.unstorable(ctx, err)
			return f
		}
		ttl, staleFor = m.cfg.TTL, m.cfg.StaleFor
		if out.ttl != unset {
			ttl = time.Duration(out.ttl)
		}
	}
	ttl -= time.Duration(float64(ttl) * m.cfg.Jitter * rand.Float64())
	if ttl > 0 {
		f.ttl = ttl + staleFor
	}
	fresh := ttl
	if staleFor == 0 && m.cfg.EarlyRefresh == 0 && m.local == nil {
		fresh = 0
	}
	f.head, f.tail = encodeEntry(what, fresh, out.took, m.token, payload)
	return f
}

func (m *missed) unstorable(ctx context.Context, err error) {
	m.cfg.Hooks.unstorable(m.key, err)
	m.cfg.Logger.WarnContext(ctx, "cacheguard: value cannot be stored", "key", m.key, "error", err)
}

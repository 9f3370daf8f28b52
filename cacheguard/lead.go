package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
)

// lead loads the value and stores it. The lease is renewed meanwhile; should it be lost all the same, the load goes on:
// its callers want the value, and if nothing was written in between it may still be stored. (Were it cancelled, two
// instances with a loader slower than the lease and renewals that fail would take the lease from each other for ever.)
//
// The callers that began before the loader did have their answer as soon as it returns, and the others when Redis has
// said that nothing was written since. Until then the lease is renewed.
func (m *missed) lead(ctx context.Context, got protocol.Acquired) answer {
	if got.TakenOver {
		m.cfg.Hooks.takeover(m.key)
	}
	drop := m.keeper.Keep(m.leaseRenewal())
	defer drop()
	began := m.clock.Tick()
	out := m.runLoader(ctx, m.job, m.slot)
	a := answer{
		value: out.value, err: out.err, absent: out.absent, outcome: Loaded, before: began, loaded: m.clock.Tick(),
	}
	switch {
	case out.err != nil && ctx.Err() != nil: // nobody waits any more
		m.inBackground(m.giveUp)
		return answer{err: closedOr(context.Cause(ctx))}
	case out.err != nil && errors.Is(out.err, context.Canceled):
		a.cancelled = true
		m.publish(a)
		m.giveUp()
	case out.err != nil && !out.absent:
		m.publish(a)
		m.rememberFailure(out)
	default:
		m.publish(a)
		a.before = m.store(ctx, out, got.Generation, began)
	}
	return a
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
func (g *Guard) loadBypassed(ctx context.Context, j *job, publish func(answer)) answer {
	breaker := g.health.Of(j.valueKey)
	wasOpen := breaker.IsOpen()
	s, err := g.takeSlot(ctx, j)
	if err != nil {
		return answer{err: err}
	}
	if wasOpen && !breaker.IsOpen() {
		m := g.newMissed(j, nil, publish)
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
	return answer{
		value: out.value, err: out.err, absent: out.absent, outcome: how, before: began,
		cancelled: out.err != nil && errors.Is(out.err, context.Canceled),
	}
}

func (m *missed) leaseRenewal() *lease.Renewal {
	return &lease.Renewal{
		Call: m.keys.Renew(m.valueKey, m.token),
		TTL:  m.cfg.LeaseTTL,
		Lost: func(int) { m.cfg.Hooks.leaseLost(m.key) },
	}
}

// rememberFailure ends the lease and leaves word of the failure for the other instances.
func (m *missed) rememberFailure(out loaded) {
	m.failures.add(m.token, out.err)
	// The callers have the load's error, whoever may have left, and if this fails the lease expires.
	_, err := m.link.Do(context.Background(), m.valueKey, &link.Call{Script: m.keys.Fail(m.valueKey, m.token, out.text), Rank: link.EndsWork})
	if err != nil {
		_ = m.redisError("fail", m.key, err)
	}
}

// store stores what was loaded, and returns before which tick calls must have begun for it to be good for them. A load
// that may be stored was not overtaken by any write up to the moment it was sent to be stored, so it is good for all calls
// that began until then. One that may not is good only for those that began before the loader did.
func (m *missed) store(ctx context.Context, out loaded, generation string, began uint64) (before uint64) {
	f := m.prepare(ctx, out, generation)
	sent := m.clock.Tick()
	cmd, err := m.link.Do(context.WithoutCancel(ctx), m.valueKey, &link.Call{
		Script: m.keys.Fill(m.valueKey, f), Rank: link.EndsWork, Size: len(f.Tail),
	})
	if err != nil {
		m.inBackground(m.giveUp)
		_ = m.redisError("fill", m.key, err) // the callers have the value
		return began
	}
	switch status, _ := cmd.Text(); status {
	case protocol.Refused:
		m.cfg.Hooks.rejected(m.key)
		return began
	case protocol.Stored, protocol.Kept:
	default:
		m.unstorable(ctx, errors.New(status))
	}
	return sent
}

// prepare makes the entry. A value that cannot be stored makes none.
func (m *missed) prepare(ctx context.Context, out loaded, generation string) protocol.Filling {
	f := protocol.Filling{Token: m.token, Generation: generation}
	what, ttl, staleFor := protocol.Absent, min(m.cfg.NegativeTTL, time.Duration(out.ttl)), time.Duration(0)
	var payload []byte
	if out.err == nil {
		var err error
		what, payload, err = m.shape.Encode(m.cfg.Codec, out.value)
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
		f.TTL = ttl + staleFor
	}
	fresh := ttl
	if staleFor == 0 && m.cfg.EarlyRefresh == 0 && m.local == nil {
		fresh = 0
	}
	f.Head, f.Tail = protocol.EncodeEntry(what, fresh, out.took, m.token, payload)
	return f
}

func (m *missed) unstorable(ctx context.Context, err error) {
	m.cfg.Hooks.unstorable(m.key, err)
	m.unstored.log(ctx, m.cfg.Logger, slog.LevelWarn, "value cannot be stored", m.key, "error", err)
}

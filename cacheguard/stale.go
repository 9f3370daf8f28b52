package cacheguard

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
)

// shortestStay is the shortest time that a refresh leaves the key to another instance before this one
// may ask again.
const shortestStay = 20 * time.Millisecond

// refresh replaces the entry in the background, unless this instance is doing so already. If a loader asked for the
// entry, the refresh is no part of that load. A transaction, whose loads are not stored, replaces nothing.
func (g *Guard) refresh(ctx context.Context, j *load, raw []byte, took time.Duration) {
	if j.scope.isTransactions() || g.isSlow(j.key) { // the slots are for callers who do not want to wait for Redis
		j.skip()
		return
	}
	j.scope.nested, j.spare = false, true
	started := g.flights.Start(outsideLoads(ctx), j.flight(background), func(ctx context.Context, publish func(answer)) answer {
		defer j.skip()
		return g.newRebuild(j, raw, publish).refresh(ctx, took)
	})
	if !started {
		j.skip()
	}
}

// refresh takes the lease if it is free, and loads. If it is not, the flight lingers for a while: as long as it is
// there, no other call of this instance asks for the lease again.
func (r *rebuild) refresh(ctx context.Context, lastTook time.Duration) answer {
	r.identify(ctx)
	loaders := &r.guard.loaders
	if loaders.left(r.load.policy.kind, r.load.key) != nil {
		return answer{}
	}
	if r.slot = loaders.limits.Try(ctx, loaders.need(r.load)); r.slot.IsNone() {
		r.stay(ctx, shortestStay) // a Limiter is not asked again at once
		return answer{}           // all loaders are busy with callers that wait
	}
	got, err := r.acquire(ctx, r.request())
	if err == nil && got.Status == protocol.Granted {
		a := r.lead(ctx, got)
		r.guard.local.Forget(r.load.key)
		r.report(ctx, a)
		return a
	}
	r.returnSlot()
	r.load.skip()
	switch {
	case err != nil:
		r.recall(err)
		if ctx.Err() == nil { // else the Guard is closed
			_ = r.guard.redisError("acquire", r.load.key, err) // no caller waits for it
		}
		r.stay(ctx, r.guard.cfg.RedisTimeout)
	case got.Status == protocol.Held:
		r.stay(ctx, min(got.Left, max(lastTook, shortestStay)))
	case got.Status == protocol.Failed:
		r.stay(ctx, got.Left)
	case got.Status == protocol.HasValue: // that of another instance
		r.guard.local.Forget(r.load.key)
	}
	return answer{}
}

// isPatient reports whether the call waits for a fresh value before it takes a stale one. A GetMany does not.
func (s *loadSpec[V]) isPatient() bool {
	return s.loader != nil && !s.spare && s.policy.patience > 0
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

// report logs a load that failed, because no caller sees the error, unless it was given up.
func (r *rebuild) report(ctx context.Context, a answer) {
	if a.err != nil && !a.absent && a.outcome == Loaded && !errors.Is(a.err, context.Canceled) {
		r.guard.tell(ctx, EventRefreshFailed, r.load.key, a.err, r.load.policy.logAttrs()...)
	}
}

func (r *rebuild) stay(ctx context.Context, d time.Duration) {
	r.guard.cfg.clock.Sleep(ctx, d/2+mathrand.N(d/2+1))
}

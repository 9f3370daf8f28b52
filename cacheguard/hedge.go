package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/run/yield"
)

var (
	errHedged = errors.New("a load beside redis was faster") // ends the wait of a call that it has answered
	errLate   = fmt.Errorf("redis takes longer than it ever does: %w", send.ErrTimeout)
)

// lateAfter is how long Redis may keep a call waiting; 0: for ever.
func (g *Guard) lateAfter(b *breaker.Breaker) time.Duration {
	switch after := g.cfg.HedgeAfter; {
	case g.cfg.FailClosed, after == off && !g.cfg.follows:
		return 0
	case after == off:
		return g.timeoutOf(b)
	case after > 0:
		return after
	}
	// A load that takes long is begun late, so that a key's expiry costs one although all instances ask Redis at once.
	longest, cost := g.cfg.RedisTimeout/2, g.loaders.cost.Average()
	if cost == 0 {
		return longest
	}
	return min(max(b.LateAfter(g.cfg.RedisTimeout), cost), longest)
}

// timeoutOf is how long a call waits for Redis, before it loads instead: as long as Redis ever needs, and what a load costs.
func (g *Guard) timeoutOf(b *breaker.Breaker) time.Duration {
	return min(max(b.Timeout(g.cfg.RedisTimeout), g.loaders.cost.Average()), g.cfg.RedisTimeout)
}

// mayGiveUp reports whether a call with the spec, which loads nothing beside Redis, may load instead of waiting for all of RedisTimeout.
func (s *loadSpec[V]) mayGiveUp(ctx context.Context, g *Guard, key string) bool {
	return g.cfg.follows && !g.cfg.FailClosed && s.loadsAnew() && !s.spare && !s.mayHedge(ctx, g, key) &&
		s.policy.kind.cost.Worth(time.Now(), math.MaxInt64) // unless one has just failed
}

// isCheaper reports whether a load takes less time than a request for the key that is late, as far as is known.
func (s *loadSpec[V]) isCheaper(g *Guard, key string) bool {
	return s.policy.kind.cost.Worth(time.Now(), g.breakerOf(key).Expected(g.cfg.RedisTimeout))
}

// loadsBeside reports whether calls load beside a Redis that is late.
func (g *Guard) loadsBeside() bool { return g.cfg.HedgeAfter != off && !g.cfg.FailClosed }

// isSlow reports whether calls for the key may load first.
func (g *Guard) isSlow(key string) bool {
	return g.slowParts.Load() > 0 && g.loadsBeside() && g.breakerOf(key).IsSlow()
}

// loadsAnew reports whether the spec is for a Get or a GetMany, whose loads need nothing of what is stored.
func (s *loadSpec[V]) loadsAnew() bool {
	return s.loader != nil || s.loadMany != nil || s.loadEach != nil
}

// mayHedge reports whether calls with the spec may load beside Redis.
func (s *loadSpec[V]) mayHedge(ctx context.Context, g *Guard, key string) bool {
	if s.spare || s.unlimited || !s.loadsAnew() || !g.loadsBeside() {
		return false
	}
	return s.isCheaper(g, key) && !scopeOf(ctx, g).isTransactions()
}

// beside waits for Redis, which is late, and loads the keys beside that if the call may. Won: that was faster, for all of them.
func (q query[V]) beside(ctx context.Context, keys []string, wait func(context.Context) error, keep func()) (all map[string]answer, is bool, err error) {
	if q.besides || !q.spec.mayHedge(ctx, q.guard, keys[0]) {
		return nil, false, wait(ctx)
	}
	return q.race(ctx, keys, limit.Slot{}, wait, keep)
}

// race waits, and hedges beside that in spare slots: the first answer wins. Won: that is the hedge's, and the wait has been given up, after keep. If the
// hedge of one key has its slot already, the wait begins once that takes long, or has no answer.
func (q query[V]) race(
	ctx context.Context, keys []string, s limit.Slot, wait func(context.Context) error, keep func(),
) (all map[string]answer, is bool, err error) {
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	hedging, drop := context.WithCancel(ctx)
	defer drop()
	ended := make(chan struct{})
	go func() { // owner: the call; stop: drop; joined below
		defer close(ended)
		if all, is = q.hedge(hedging, keys, s); is {
			keep()
			stop(errHedged)
		}
	}()
	if !s.IsNone() {
		timer := time.NewTimer(min(q.guard.lateAfter(q.guard.breakerOf(keys[0])), q.guard.cfg.RedisTimeout/2))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ended:
		}
	}
	if err = context.Cause(within); !errors.Is(err, errHedged) {
		err = wait(within)
	}
	drop()
	<-ended
	if is = is && err != nil && errors.Is(context.Cause(within), errHedged); is {
		q.guard.hedgesWon.Add(1)
	}
	return all, is, err
}

// hedge loads in flights that all callers of the instance share, and which may have begun: one key in the slot, if there is one. It answers only
// if the loads are good for this call: failures are not, as Redis may have the values.
func (q query[V]) hedge(ctx context.Context, keys []string, s limit.Slot) (map[string]answer, bool) {
	all, ok := make(map[string]answer, len(keys)), true
	for ctx := outsideLoads(ctx); ok && len(keys) > 0; s = (limit.Slot{}) {
		keys, ok = q.hedgeOnce(ctx, keys, s, all)
		ok = ok && (len(keys) == 0 || ctx.Err() == nil)
	}
	return all, ok
}

// hedgeOnce returns the keys whose loads had begun before the call.
func (q query[V]) hedgeOnce(ctx context.Context, keys []string, s limit.Slot, all map[string]answer) (rest []string, ok bool) {
	g := q.guard
	var b *batch
	if q.spec.loadMany != nil {
		if s, ok = g.loaders.limits.Take(ctx, limit.Need{Spare: true, Kind: q.spec.policy.kind.loadSlots}); !ok {
			return nil, false
		}
		taken := s
		b, s = q.batchThatTakes(ctx, func(context.Context) (limit.Slot, error) {
			g.journal.LoadsBeside()
			return taken, nil
		}, keys), limit.Slot{}
	}
	ok = true
	entered, tickets := make([]string, 0, len(keys)), make([]ticket, 0, len(keys))
	for _, key := range keys {
		j := q.loadOf(ctx, key, b)
		j.spare = true
		t, err := g.enter(ctx, j, hedged, func(ctx context.Context, publish func(answer)) answer {
			return g.runHedge(ctx, j, s, publish)
		})
		if err != nil || t.Joined {
			g.loaders.limits.Free(s) // before the wait: the flight may wait for this very slot
		}
		if err != nil {
			ok = false
			continue
		}
		entered, tickets = append(entered, key), append(tickets, t)
	}
	for i, t := range tickets {
		switch a, err := g.awaitTicket(ctx, t, entered[i], q.asked); {
		case err != nil:
			ok = false
		case !a.answers(q.asked):
			rest = append(rest, entered[i])
		case a.err != nil && !a.absent:
			ok = false
		default:
			all[entered[i]] = a
		}
	}
	return rest, ok
}

// runHedge is the run of such a flight: it loads in the slot, or waits for a spare one. Then it stays until Redis has answered something,
// and as long again as makes a request late, as other answers are about to come: a Redis that stops for a while causes one load of a key, and
// no more. It need not where Redis is known to be slow.
func (g *Guard) runHedge(ctx context.Context, j *load, s limit.Slot, publish func(answer)) answer {
	part := g.breakers.Of(j.valueKey)
	if s.IsNone() {
		var err error
		if s, err = g.loaders.takeSlot(ctx, j); err != nil {
			return answer{err: err}
		}
	}
	answered := part.Answered()
	if j.batch == nil { // else that is the load
		g.journal.LoadsBeside()
	}
	a := g.loadIn(ctx, j, s, Loaded)
	switch {
	case a.err != nil && !a.absent:
		if ctx.Err() == nil {
			j.policy.kind.cost.Failed(time.Now())
		}
	case !part.IsSlow():
		publish(a)
		select {
		case <-answered:
		case <-ctx.Done():
		}
		g.awaitOthers(ctx, part)
	}
	return a
}

// awaitOthers waits, once Redis has answered, for as long as makes a request late. Where the process is so busy that other answers may be there, and
// nobody has had time to look, that is a little longer.
func (g *Guard) awaitOthers(ctx context.Context, part *breaker.Breaker) {
	longest := g.cfg.RedisTimeout / 2
	for i, starved := 0, true; starved && i < yield.Reprieves && !part.IsSlow(); i++ { // if it is slow, that was no answer
		lifecycle.Sleep(ctx, min(g.lateAfter(part), longest))
		starved, longest = yield.Starved(), g.cfg.RedisTimeout/2/yield.Reprieves
	}
}

// retrieveSlowly answers a call whose part is slow: from a load if there is a slot for it, and from Redis if there is none, or that is faster.
func (q query[V]) retrieveSlowly(ctx context.Context, past write.Past) (v V, how Outcome, err error) {
	g, key := q.guard, q.spec.key
	q.besides = true
	q.fillLocal(past)
	s := g.loaders.limits.AtHand(limit.Need{Spare: true, Kind: q.spec.policy.kind.loadSlots})
	if s.IsNone() {
		if old, ok := q.spec.lateFromLocal(g, key); ok {
			return old.result()
		}
	}
	all, is, err := q.race(ctx, []string{key}, s, func(ctx context.Context) error {
		v, how, err = q.ask(ctx, past)
		return err
	}, func() {})
	if is {
		return unpack[V](all[key])
	}
	return v, how, err
}

// lateFromLocal is staleFromLocal while Redis has only not answered yet: what the tier may not know of must be nothing.
func (s *loadSpec[V]) lateFromLocal(g *Guard, key string) (f found[V], ok bool) {
	if g.local == nil || !g.local.IsInformed(key) {
		return f, false
	}
	return s.staleFromLocal(g, key)
}

// awaitRead waits for a read of a Get or a Fetch. Done: the call has its answer otherwise, or will not get one.
func (q *query[V]) awaitRead(ctx context.Context, read *send.Read) (v V, how Outcome, done bool, err error) {
	late, err := read.WaitLate(ctx)
	switch {
	case late:
		return q.awaitLateRead(ctx, read)
	case err != nil:
		return v, "", true, unanswered(ctx, q.spec.key, err)
	}
	return v, "", false, nil
}

func (q query[V]) awaitLateRead(ctx context.Context, read *send.Read) (v V, how Outcome, done bool, err error) {
	key := q.spec.key
	if old, ok := q.spec.lateFromLocal(q.guard, key); ok {
		v, how, err = old.result()
		return v, how, true, err
	}
	all, is, err := q.beside(ctx, []string{key}, func(ctx context.Context) error { return q.waitLate(ctx, key, read) }, func() {})
	switch {
	case is:
		v, how, err = unpack[V](all[key])
	case err != nil && ctx.Err() == nil && errors.Is(err, errLate):
		v, how, err = q.bypass(ctx, q.guard.redisError("get", key, err))
	case err != nil:
		err = unanswered(ctx, key, err)
	default:
		return v, "", false, nil
	}
	return v, how, true, err
}

// waitLate waits for a read of the key, which is late: if the call may load instead, for as long as reads take at most; then the error is errLate.
func (q query[V]) waitLate(ctx context.Context, key string, read *send.Read) error {
	if !q.spec.mayGiveUp(ctx, q.guard, key) {
		return read.Wait(ctx)
	}
	within, stop := context.WithTimeoutCause(ctx, q.guard.timeoutOf(q.guard.breakerOf(key))-read.Age(), errLate)
	defer stop()
	err := read.Wait(within)
	if err != nil && errors.Is(context.Cause(within), errLate) {
		return errLate
	}
	return err
}

// gotten is what came of a ticket.
type gotten struct {
	answer
	err error // there was no answer
}

// awaitAll waits for the flights of the keys.
func (q *query[V]) awaitAll(ctx context.Context, keys []string, tickets []ticket) []gotten {
	all, late := make([]gotten, len(tickets)), false
	for i := 0; i < len(tickets) && !late; i++ {
		t := tickets[i]
		ctx, end := q.guard.beginJoined(ctx, t, keys[i])
		if late = t.Late(ctx); late {
			copy(all[i:], q.awaitLate(ctx, keys[i:], tickets[i:]))
		} else {
			all[i].answer, all[i].err = waitFor(ctx, t, q.asked)
		}
		_ = endJoined(end, all[i].answer, all[i].err)
	}
	return all
}

// awaitLate waits for flights, the first of which Redis keeps waiting, and loads their keys beside that.
func (q query[V]) awaitLate(ctx context.Context, keys []string, tickets []ticket) []gotten {
	all := make([]gotten, len(tickets))
	hedged, is, _ := q.beside(ctx, keys, func(ctx context.Context) (failed error) { // each has its error
		for i, t := range tickets {
			if all[i].answer, all[i].err = waitFor(ctx, t, q.asked); failed == nil {
				failed = all[i].err
			}
		}
		return failed
	}, func() {
		for _, t := range tickets {
			t.Keep()
		}
	})
	for i := range all {
		if is {
			all[i] = gotten{answer: hedged[keys[i]]}
		}
	}
	return all
}

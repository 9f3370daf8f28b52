package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"runtime"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/wake"
)

// rebuild is a flight that gets the value of a key through the lease: from another instance that loads, or with a load
// of its own.
type rebuild struct {
	guard       *Guard
	load        *load
	breaker     *breaker.Breaker
	token       string
	acquired    time.Time    // before the lease was asked for
	unfit       []byte       // what the cache has for the key but nobody can use; nil if nothing
	aged        bool         // it is unfit because it seems too old
	publish     func(answer) // gives the answer to the callers that it is good for
	slot        limit.Slot
	epochs      *epoch.Reading // asked for in this attempt; nil: not yet
	under       *epoch.Reading // from before the load; they are made with the request for the lease
	shownBefore uint64         // the tick before it was asked whether the value that the loader is shown is valid; 0: it was not
	waited      bool           // for its slot: by now, another instance may have stored the value
	joined      int            // callers of the flight, when it last asked, or its load began
	afterBypass bool           // it has given up on Redis once: if that fails again, it loads without
	askedAgain  int            // how often it has had to ask again
	after       string         // the generation of the lease whose end it waits for; empty: none
	seenBefore  uint64         // the tick before it was last seen; once its message has come, later than any
	origin      string         // of the load that it waits for
	endWait     func(End)      // ends the task of waiting for another instance; nil: there is none
	patience    time.Time      // when WaitTimeout is over; zero: it has none
	waiters     *flight.Waiters
}

func newRebuild(g *Guard, j *load, unfit []byte, publish func(answer)) *rebuild {
	return &rebuild{
		guard: g, load: j, breaker: g.breakers.Of(j.valueKey), token: rand.Text(), unfit: g.cfg.packing().Unfit(unfit), aged: j.aged, publish: publish,
	}
}

// run asks for the value or the lease until it has an answer. The watch begins before the first request, so that no
// wake-up is missed. A transaction has only its own loads.
func (r *rebuild) run(ctx context.Context) (a answer) {
	g := r.guard
	if r.load.scope.isTransactions() {
		return r.loadAlone(ctx)
	}
	r.identify(ctx)
	r.waiters = flight.WaitersOf(ctx)
	defer r.finishWait(&a)
	waiter := g.inbox.Watch(protocol.LeaseKey(r.load.valueKey))
	defer waiter.Stop()
	if r.load.policy.kind.version != 0 { // the end of an update is published under the lease without a version
		defer waiter.Also(protocol.LeaseKey(protocol.WithoutVersion(r.load.valueKey))).Stop()
	}
	if g.cfg.WaitTimeout > 0 {
		r.patience = time.Now().Add(g.cfg.WaitTimeout)
	}
	g.inbox.Start()
	for polls := 0; r.askedAgain <= maxAsks; polls++ {
		if a, done := r.attempt(ctx, waiter, polls); done {
			return a
		}
	}
	return r.loadAlone(ctx)
}

// loadAlone ends the wait for others.
func (r *rebuild) loadAlone(ctx context.Context) answer {
	r.finishWait(nil)
	return r.guard.loadDirectly(ctx, r.load, Loaded)
}

// longWrite is how long a write of an Update runs until those who wait for it say so.
const longWrite = 5 * time.Second

// attempt asks once, and does what the reply says. Not done: ask again. Without a slot it asks only for the value,
// because a lease must not wait in a queue. But where Redis is slower than loads, slots would stand idle while Redis is
// asked: a lease takes one once it is there.
func (r *rebuild) attempt(ctx context.Context, waiter *wake.Waiter, polls int) (a answer, done bool) {
	g := r.guard
	slow := r.breaker.IsSlow()
	left := g.loaders.left(r.load.policy.kind, r.load.key) != nil
	switch {
	case left: // no slot and no lease is to wait for that loader
	case slow:
		r.returnSlot()
	case r.slot.IsNone():
		r.slot = g.loaders.limits.Try(ctx, g.loaders.need(r.load))
	}
	request := r.request()
	request.Take, request.Inbox = request.Take || slow && !left, g.inbox.Address()
	runtime.Gosched() // callers that are about to join may do so before the tick, and be covered
	r.joined = r.waiters.Entered()
	before := g.clock.Tick()
	if r.load.anew != nil {
		r.shownBefore = before
	}
	if r.epochs = nil; polls > 0 { // there may be a value
		r.asked(ctx)
	}
	if r.afterBypass && g.writes.IsPending(r.load.key) { // after the tick: no call that began later gets this answer
		r.returnSlot()
		return g.loadDirectly(ctx, r.load, Bypassed), true
	}
	got, err := r.acquire(ctx, request)
	if err == nil && got.Status == protocol.Granted {
		r.finishWait(nil)
		return r.lead(ctx, got), true // the slot is the loader's now
	}
	r.returnSlot()
	after := r.after
	if r.after = ""; got.Status == protocol.Held { // a message may be on its way while it asks again
		r.after, r.seenBefore = got.Generation, before
	}
	switch {
	case err != nil && ctx.Err() != nil: // every caller has left
		return abandoned(ctx), true
	case err != nil:
		return r.unreachable(ctx, err), true
	case got.Status == protocol.HasValue:
		g.expected.Found(true)
		how := Hit
		if polls > 0 {
			how = Shared
		}
		return r.use(ctx, got.Value, how, before)
	case got.Status == protocol.Left:
		return r.wakeUp(ctx, wake.Message{Body: got.Message}, after, min(before, r.seenBefore))
	case got.Status == protocol.Failed:
		r.origin = got.Origin()
		return r.failedElsewhere(r.failure(got), got.Message), true
	case got.Status == protocol.Free:
		r.waited = true
		a, ok := r.takeSlot(ctx)
		return a, !ok
	}
	if got.Writes > longWrite {
		g.tell(ctx, EventWaits, r.load.key, nil, "by", got.Writer, "for", got.Writes)
	}
	r.load.skip()
	r.asked(ctx) // for the value that the holder sends
	r.beginWait(ctx, got)
	waiter.Waiting()
	return r.await(ctx, waiter, got, polls, before)
}

// unreachable answers when Redis could not be asked for the lease: from the flight of those who load without. The reply
// may be all that was lost.
func (r *rebuild) unreachable(ctx context.Context, err error) answer {
	r.finishWait(nil)
	r.recall(err)
	reason := r.guard.redisError("acquire", r.load.key, err)
	if r.guard.cfg.FailClosed || r.load.spare {
		return answer{err: reason}
	}
	if r.afterBypass {
		return r.guard.loadDirectly(ctx, r.load, Bypassed)
	}
	if t, err := r.guard.enterDirect(ctx, r.load, reason); err == nil {
		if a, err := waitFor(ctx, t, 0, nil); err == nil {
			return a
		}
	}
	return abandoned(ctx)
}

// takeSlot waits for a slot. Not ok: there is none, and the answer says why.
func (r *rebuild) takeSlot(ctx context.Context) (a answer, ok bool) {
	r.slot, a.err = r.guard.loaders.takeSlot(ctx, r.load)
	if ok = a.err == nil; errors.Is(a.err, errNoSpareSlot) {
		a.err = nil // nobody waits any more; callers that come now ask again
	}
	return a, ok
}

func (r *rebuild) returnSlot() {
	r.guard.loaders.limits.Free(r.slot)
	r.slot = limit.Slot{}
}

// failedElsewhere is the answer when the load of another instance failed, and said this.
func (r *rebuild) failedElsewhere(err error, message string) answer {
	text, _ := r.load.policy.names.Decode(message)
	r.load.policy.kind.watched.Heard(err, text, protocol.LongestFailureMemory)
	return answer{err: err, outcome: Shared, origin: r.origin}
}

// failure returns the remembered error of a load: the error itself if it was one of ours, else its text.
func (r *rebuild) failure(got protocol.Acquired) error {
	if err := r.guard.loaders.failures.Find(got.Failed); err != nil {
		return err
	}
	return r.load.policy.loadError(r.load.key, got.Message)
}

// identify makes the origin of the load, if it has one, part of the token for its lease, so that whoever finds the
// lease knows whose load it is.
func (r *rebuild) identify(ctx context.Context) {
	if origin := r.guard.cfg.Hooks.origin(ctx); origin != "" {
		r.token = protocol.NewToken(origin)
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

func (r *rebuild) stay(ctx context.Context, d time.Duration) {
	r.guard.cfg.clock.Sleep(ctx, d/2+mathrand.N(d/2+1))
}

// report logs a load that failed, because no caller sees the error, unless it was given up.
func (r *rebuild) report(ctx context.Context, a answer) {
	if a.err != nil && !a.absent && a.outcome == Loaded && !errors.Is(a.err, context.Canceled) {
		r.guard.tell(ctx, EventRefreshFailed, r.load.key, a.err, r.load.policy.logAttrs()...)
	}
}

// shortestStay is the shortest time that a refresh leaves the key to another instance before this one
// may ask again.
const shortestStay = 20 * time.Millisecond

package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
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

func (g *Guard) newRebuild(j *load, unfit []byte, publish func(answer)) *rebuild {
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

// confirm asks whether an entry is valid. If it is not, it will be overwritten. Epochs that were read before the entry
// may be too old to know one that its load made.
func (r *rebuild) confirm(ctx context.Context, raw []byte, stamp protocol.Stamp) (a answer, done, valid bool) {
	early := r.epochs != nil
	holds, redisErr, err := r.asked(ctx).Check(ctx, stamp)
	if early && !holds && err == nil {
		r.epochs = nil
		holds, redisErr, err = r.asked(ctx).Check(ctx, stamp)
	}
	switch {
	case err != nil:
		return abandoned(ctx), true, false
	case redisErr != nil:
		return r.unreachable(ctx, redisErr), true, false
	case !holds:
		r.unfit, r.aged = raw, false
		r.askedAgain++
		r.load.forgetOld()
		return answer{}, false, false
	}
	return answer{}, false, true
}

// use makes the answer of an entry. One that cannot be used will be overwritten.
func (r *rebuild) use(ctx context.Context, raw []byte, how Outcome, before uint64) (answer, bool) {
	e, value, err := r.load.decode(&r.guard.cfg, raw)
	switch {
	case err != nil && e.Kind == 0:
		r.guard.tell(ctx, EventDamaged, r.load.key, err)
	case err != nil && r.guard.undecodable(r.load.key, r.load.policy, e, err) == alienEntry:
		return r.guard.loadDirectly(ctx, r.load, Loaded), true
	}
	age := fresh
	if err == nil && how != Shared {
		age = r.guard.freshness(r.load.key, r.load.policy, e)
	}
	if err == nil && age != expired {
		if a, done, valid := r.confirm(ctx, raw, e.Stamp); !valid {
			return a, done
		}
	}
	switch {
	case err != nil || age == expired:
		r.unfit, r.aged = r.guard.cfg.packing().Unfit(raw), err == nil
		r.load.forgetOld() // another value has taken its place
		return answer{}, false
	case age != fresh:
		return answer{}, true // good for nobody: a call that reads such a value replaces it, too
	}
	if e.Kind == protocol.Absent {
		return answer{err: ErrNotFound, absent: true, outcome: Negative, before: before, origin: r.origin}, true
	}
	return answer{value: value, outcome: how, before: before, origin: r.origin}, true
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
	if err := r.guard.failures.Find(got.Failed); err != nil {
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

package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"time"

	"github.com/cacheguard/go/cacheguard/internal/limit"
	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/wake"
)

// rebuild is a flight that gets the value of a key through the lease: from another instance that loads, or with a load of
// its own.
type rebuild struct {
	guard       *Guard
	job         *job
	breaker     *health.Breaker
	token       string
	unfit       []byte       // what the cache has for the key but nobody can use; nil if nothing
	aged        bool         // it is unfit because it seems too old
	publish     func(answer) // gives the answer to the callers that it is good for
	slot        limit.Slot
	epochs      *epoch.Reading // asked for in this attempt; nil: not yet
	joined      int            // callers of the flight, when the load began
	afterBypass bool           // it has given up on Redis once: if that fails again, it loads without
	askedAgain  int            // how often it has had to ask again
	origin      string         // of the load that it waits for
	endWait     func(End)      // ends the task of waiting for another instance; nil: there is none
	patience    time.Time      // when WaitTimeout is over; zero: it has none
}

func (g *Guard) newRebuild(j *job, unfit []byte, publish func(answer)) *rebuild {
	return &rebuild{
		guard: g, job: j, breaker: g.health.Of(j.valueKey), token: rand.Text(), unfit: g.cfg.packing().Unfit(unfit), aged: j.aged, publish: publish,
	}
}

// run asks for the value or the lease until it has an answer. The watch begins before the first request, so that no
// wake-up is missed.
func (r *rebuild) run(ctx context.Context) (a answer) {
	g := r.guard
	r.identify(ctx)
	defer r.finishWait(&a)
	waiter := g.inbox.Watch(protocol.LeaseKey(r.job.valueKey))
	defer waiter.Stop()
	if r.job.policy.seat.version != 0 { // the end of an update is published under the lease without a seat
		defer waiter.Also(protocol.LeaseKey(protocol.WithoutSeat(r.job.valueKey))).Stop()
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
	return r.guard.loadDirectly(ctx, r.job, Loaded)
}

// attempt asks once, and does what the reply says. Not done: ask again. Without a slot it asks only for the value, because
// a lease must not wait in a queue.
func (r *rebuild) attempt(ctx context.Context, waiter *wake.Waiter, polls int) (a answer, done bool) {
	g := r.guard
	if r.slot.IsNone() {
		r.slot = g.loaders.limits.Try(ctx, g.loaders.need(r.job))
	}
	request := r.request()
	request.Inbox = g.inbox.Address()
	runtime.Gosched() // callers that are about to join may do so before the tick, and be covered
	before := g.clock.Tick()
	if r.epochs = nil; polls > 0 { // there may be a value
		r.asked(ctx)
	}
	if r.afterBypass && g.invalidations.pending.has(r.job.key) { // after the tick: no call that began later gets this answer
		r.returnSlot()
		return g.loadDirectly(ctx, r.job, Bypassed), true
	}
	got, err := r.acquire(ctx, request)
	if err == nil && got.Status == protocol.Granted {
		r.finishWait(nil)
		return r.lead(ctx, got), true // the slot is the loader's now
	}
	r.returnSlot()
	switch {
	case err != nil && ctx.Err() != nil: // every caller has left
		return answer{err: closedOr(context.Cause(ctx))}, true
	case err != nil:
		return r.unreachable(ctx, err), true
	case got.Status == protocol.HasValue:
		g.expected.Found(true)
		how := Hit
		if polls > 0 {
			how = Shared
		}
		return r.use(ctx, got.Value, how, before)
	case got.Status == protocol.Failed:
		r.origin = got.Origin()
		return answer{err: r.failure(got), outcome: Shared, origin: r.origin}, true
	case got.Status == protocol.Writing && r.job.scope.writing:
		return g.loadDirectly(ctx, r.job, Loaded), true
	case got.Status == protocol.Free:
		if r.slot, err = g.loaders.takeSlot(ctx, r.job); errors.Is(err, errNoSpareSlot) {
			return answer{}, true // nobody waits any more; callers that come now ask again
		}
		return answer{err: err}, err != nil
	}
	r.job.skip()
	r.asked(ctx) // for the value that the holder sends
	r.beginWait(ctx, got)
	waiter.Waiting()
	return r.await(ctx, waiter, got, wait{polls: polls, before: before})
}

// request is what the rebuild asks for: the lease only if it has a slot.
func (r *rebuild) request() protocol.Request {
	return protocol.Request{Token: r.token, Take: !r.slot.IsNone(), Unfit: r.unfit, Aged: r.aged}
}

// acquire asks Redis. If the flight ends before the reply, it gives back a lease that was granted. If a flight may not take
// the lease, it first asks whether there is anything at all: in a process at its limit there mostly is not, and the question
// costs Redis a third of the script.
func (r *rebuild) acquire(ctx context.Context, request protocol.Request) (protocol.Acquired, error) {
	g, valueKey := r.guard, r.job.valueKey
	if r.job.batch != nil {
		done, err := r.job.batch.takeScriptSlot(ctx)
		if err != nil {
			return protocol.Acquired{}, err
		}
		defer done()
	}
	if !request.Take && request.Unfit == nil && g.plain {
		cmd, err := g.link.Do(ctx, valueKey, &link.Call{Script: g.keys.Exists(valueKey), Rank: link.Ordinary})
		if err != nil || cmd.Val() == int64(0) {
			return protocol.Acquired{Status: protocol.Free}, err
		}
	}
	rank := link.Ordinary
	if r.slot.IsOwn() {
		rank = link.HoldsSlot
	}
	if request.Take {
		r.beforeLoad(ctx).Prepare(ctx)
	}
	asked := g.cfg.clock.Now()
	cmd, err := g.link.Do(ctx, valueKey, &link.Call{Script: g.keys.Acquire(valueKey, request), Rank: rank, Late: r.tooLate})
	if err != nil {
		return protocol.Acquired{}, err
	}
	got, err := protocol.ParseAcquired(cmd)
	if !got.FreshAt.IsZero() {
		g.serverClocks.Note(r.job.key, got.FreshAt, asked)
	}
	return got, err
}

// asked returns epochs that were asked for in this attempt, after its tick: they judge a value that others loaded.
func (r *rebuild) asked(ctx context.Context) *epoch.Reading {
	if r.epochs == nil {
		epochs := r.guard.epochs.Begin(r.job.key, r.job.valueKey, r.job.kind, r.job.known)
		epochs.Ask(ctx)
		r.epochs = &epochs
	}
	return r.epochs
}

// beforeLoad returns epochs that were asked for before the load of this rebuild begins.
func (r *rebuild) beforeLoad(ctx context.Context) *epoch.Reading {
	if r.epochs == nil && r.job.epochs != nil && r.job.anew == nil {
		return r.job.epochs
	}
	return r.asked(ctx) // also to see whether what is replaced is still valid
}

func (r *rebuild) returnSlot() {
	r.guard.loaders.limits.Free(r.slot)
	r.slot = limit.Slot{}
}

// failure returns the remembered error of a load: the error itself if it was one of ours, else its text.
func (r *rebuild) failure(got protocol.Acquired) error {
	if err := r.guard.failures.Find(got.Failed); err != nil {
		return err
	}
	return r.job.policy.loadError(r.job.key, got.Message)
}

// confirm asks whether an entry is valid. If it is not, it will be overwritten. Epochs that were read before the entry may be too old to
// know one that its load made.
func (r *rebuild) confirm(ctx context.Context, raw []byte, stamp protocol.Stamp) (a answer, done, valid bool) {
	early := r.epochs != nil
	holds, redisErr, err := r.asked(ctx).Check(ctx, stamp)
	if early && !holds && err == nil {
		r.epochs = nil
		holds, redisErr, err = r.asked(ctx).Check(ctx, stamp)
	}
	switch {
	case err != nil:
		return answer{err: closedOr(context.Cause(ctx))}, true, false
	case redisErr != nil:
		return r.unreachable(ctx, redisErr), true, false
	case !holds:
		r.unfit, r.aged = raw, false
		r.askedAgain++
		r.job.forgetOld()
		return answer{}, false, false
	}
	return answer{}, false, true
}

// use makes the answer of an entry. One that cannot be used will be overwritten.
func (r *rebuild) use(ctx context.Context, raw []byte, how Outcome, before uint64) (answer, bool) {
	e, value, err := r.job.decode(&r.guard.cfg, raw)
	switch {
	case err != nil && e.Kind == 0:
		r.guard.onDamaged(r.job.key, err)
	case err != nil && r.guard.undecodable(r.job.key, r.job.policy, e, err) == alienEntry:
		return r.guard.loadDirectly(ctx, r.job, Loaded), true
	}
	age := fresh
	if err == nil && how != Shared {
		age = r.guard.freshness(r.job.key, r.job.policy, e)
	}
	if err == nil && age != expired {
		if a, done, valid := r.confirm(ctx, raw, e.Stamp); !valid {
			return a, done
		}
	}
	switch {
	case err != nil || age == expired:
		r.unfit, r.aged = r.guard.cfg.packing().Unfit(raw), err == nil
		r.job.forgetOld() // another value has taken its place
		return answer{}, false
	case age != fresh:
		return answer{}, true // good for nobody: a call that reads such a value replaces it, too
	}
	if e.Kind == protocol.Absent {
		return answer{err: ErrNotFound, absent: true, outcome: Negative, before: before, origin: r.origin}, true
	}
	return answer{value: value, outcome: how, before: before, origin: r.origin}, true
}

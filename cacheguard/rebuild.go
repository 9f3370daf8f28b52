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
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/redis/wake"
)

// readFirst is how far away Redis is at most if a load reads before it asks for its lease.
const readFirst = time.Millisecond

// rebuild is a flight that gets the value of a key through the lease: from another instance that loads, or with a load of
// its own.
type rebuild struct {
	guard       *Guard
	load        *load
	breaker     *breaker.Breaker
	token       string
	unfit       []byte       // what the cache has for the key but nobody can use; nil if nothing
	aged        bool         // it is unfit because it seems too old
	publish     func(answer) // gives the answer to the callers that it is good for
	slot        limit.Slot
	epochs      *epoch.Reading // asked for in this attempt; nil: not yet
	under       *epoch.Reading // from before the load; they are made with the request for the lease
	waited      bool           // for its slot: by now, another instance may have stored the value
	joined      int            // callers of the flight, when the load began
	afterBypass bool           // it has given up on Redis once: if that fails again, it loads without
	askedAgain  int            // how often it has had to ask again
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

// attempt asks once, and does what the reply says. Not done: ask again. Without a slot it asks only for the value, because
// a lease must not wait in a queue.
func (r *rebuild) attempt(ctx context.Context, waiter *wake.Waiter, polls int) (a answer, done bool) {
	g := r.guard
	if r.slot.IsNone() {
		r.slot = g.loaders.limits.Try(ctx, g.loaders.need(r.load))
	}
	request := r.request()
	request.Inbox = g.inbox.Address()
	runtime.Gosched() // callers that are about to join may do so before the tick, and be covered
	before := g.clock.Tick()
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
	case got.Status == protocol.Failed:
		r.origin = got.Origin()
		return answer{err: r.failure(got), outcome: Shared, origin: r.origin}, true
	case got.Status == protocol.Free:
		if r.slot, err = g.loaders.takeSlot(ctx, r.load); errors.Is(err, errNoSpareSlot) {
			return answer{}, true // nobody waits any more; callers that come now ask again
		}
		r.waited = true
		return answer{err: err}, err != nil
	}
	r.load.skip()
	r.asked(ctx) // for the value that the holder sends
	r.beginWait(ctx, got)
	waiter.Waiting()
	return r.await(ctx, waiter, got, polls, before)
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
		r.guard.tell(ctx, report.Damaged, r.load.key, err)
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

// await waits until the holder is done, or may be dead. Not done: ask again. A value that is stored later may answer any call that began before
// the tick before the request.
func (r *rebuild) await(
	ctx context.Context, waiter *wake.Waiter, got protocol.Acquired, polls int, before uint64,
) (a answer, done bool) {
	limit := wake.Patience(got.Left, got.Registered, polls)
	if !r.patience.IsZero() {
		limit = min(limit, time.Until(r.patience))
	}
	if due := r.due(); due > 0 && polls == 0 {
		limit = min(limit, due)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case msg := <-waiter.C:
		return r.wakeUp(ctx, msg, got.Generation, before)
	case <-timer.C:
		if r.impatient() {
			return r.loadAlone(ctx), true
		}
		return answer{}, false
	case <-r.breaker.Opened():
		return r.unreachable(ctx, breaker.ErrOpen), true // the message would not come either
	case <-ctx.Done():
		return abandoned(ctx), true
	}
}

// due is after how long the message should have come, by what loads of the kind take: then it is late, or they take longer today. 0: nobody knows,
// or wants to.
func (r *rebuild) due() time.Duration {
	took := r.load.policy.kind.cost.Average()
	if late := r.guard.lateAfter(r.breaker); took > 0 && late > 0 && r.guard.cfg.HedgeAfter != off {
		return 2*took + late
	}
	return 0
}

// impatient reports whether WaitTimeout is over.
func (r *rebuild) impatient() bool { return !r.patience.IsZero() && !time.Now().Before(r.patience) }

// wakeUp does what a message says. A message is about the end of one generation of the lease. If the flight registered in
// another one, the message proves nothing, and the flight asks again.
func (r *rebuild) wakeUp(ctx context.Context, msg wake.Message, generation string, before uint64) (answer, bool) {
	what, rest, ok := protocol.ParsePush(msg.Body, generation)
	if msg.AskAgain || !ok {
		return answer{}, false
	}
	switch what {
	case protocol.PushedValue:
		return r.use(ctx, []byte(rest), Shared, before)
	case protocol.PushedFailure:
		return answer{err: r.load.policy.loadError(r.load.key, rest), outcome: Shared, origin: r.origin}, true
	case protocol.PushedUnstored:
		return r.loadAlone(ctx), true
	case protocol.PushedAskAgain:
		r.askedAgain++
	}
	return answer{}, false
}

// beginWait begins the task of waiting for another instance, unless that has begun.
func (r *rebuild) beginWait(ctx context.Context, got protocol.Acquired) {
	hooks := &r.guard.cfg.Hooks
	if hooks.Begin == nil && hooks.Origin == nil {
		return
	}
	r.origin = got.Origin()
	if r.endWait == nil {
		_, r.endWait = hooks.begin(ctx, TaskWait, r.load.key)
	}
}

// finishWait ends that task, if there is one: with the answer, or because the flight loads by itself (nil).
func (r *rebuild) finishWait(a *answer) {
	if r.endWait == nil {
		return
	}
	end := End{Origin: r.origin}
	if a != nil {
		end.Outcome, end.Err = a.outcome, a.err
	}
	r.endWait(end)
	r.endWait = nil
}

// unreachable answers when Redis could not be asked for the lease. The reply may be all that was lost.
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
	return r.guard.loadBypassed(ctx, r.load, r.publish)
}

// request is what the rebuild asks for: the lease only if it has a slot.
func (r *rebuild) request() protocol.Request {
	return protocol.Request{Token: r.token, Take: !r.slot.IsNone(), Unfit: r.unfit, Aged: r.aged}
}

// acquire asks Redis. If the flight ends before the reply, it gives back a lease that was granted. If a flight may not take
// the lease, it first asks whether there is anything at all: in a process at its limit there mostly is not, and the question
// costs Redis a third of the script.
func (r *rebuild) acquire(ctx context.Context, request protocol.Request) (protocol.Acquired, error) {
	g, valueKey := r.guard, r.load.valueKey
	if r.load.batch != nil {
		done, err := r.load.batch.takeScriptSlot(ctx)
		if err != nil {
			return protocol.Acquired{}, err
		}
		defer done()
	}
	if !request.Take && request.Unfit == nil && g.plain {
		cmd, err := g.link.Do(ctx, valueKey, &send.Call{Script: g.keys.Exists(valueKey), Rank: send.Ordinary, Waiters: r.waiters})
		if err != nil || cmd.Val() == int64(0) {
			return protocol.Acquired{Status: protocol.Free}, err
		}
	}
	if r.waited && request.Take && request.Unfit == nil {
		if raw := r.stored(ctx); len(raw) > 0 {
			return protocol.Acquired{Status: protocol.HasValue, Value: raw}, nil
		}
	}
	rank := send.Ordinary
	if r.slot.IsOwn() {
		rank = send.HoldsSlot
	}
	if request.Take {
		r.prepareLoad(ctx)
	}
	asked := g.cfg.clock.Now()
	cmd, err := g.link.Do(ctx, valueKey, &send.Call{Script: g.keys.Acquire(valueKey, request), Rank: rank, Late: r.tooLate, Waiters: r.waiters})
	if err != nil {
		return protocol.Acquired{}, err
	}
	got, err := protocol.ParseAcquired(cmd)
	if r.waited && err == nil {
		g.storedMeanwhile.Found(got.Status == protocol.HasValue)
	}
	if !got.FreshAt.IsZero() {
		g.serverClocks.Note(r.load.key, got.FreshAt, asked)
	}
	return got, err
}

// stored reads what another instance may have stored while this one waited for its slot, with the epochs that judge it. In a cold start of a
// fleet that is most keys, and a read costs Redis a tenth of the script. Where Redis is far, or nobody else loads, the script asks at once.
func (r *rebuild) stored(ctx context.Context) []byte {
	g, valueKey := r.guard, r.load.valueKey
	if g.storedMeanwhile.Expected() || g.link.Shortest(valueKey) > readFirst {
		return nil
	}
	epochs := r.load.reading(g)
	read, err := g.link.Get(ctx, valueKey, epochs.Keys()...)
	if err != nil || read.Err != nil {
		return nil // the script will say why
	}
	epochs.Take(read)
	r.epochs = &epochs
	if read.Raw != nil {
		g.storedMeanwhile.Found(true)
	}
	return read.Raw
}

// asked returns epochs that were asked for in this attempt, after its tick: they judge a value that others loaded.
func (r *rebuild) asked(ctx context.Context) *epoch.Reading {
	if r.epochs == nil {
		epochs := r.load.reading(r.guard)
		epochs.Ask(ctx)
		r.epochs = &epochs
	}
	return r.epochs
}

// prepareLoad begins to ask for the epochs under which the load is made. Those of the call that began the flight serve, unless a value is replaced.
func (r *rebuild) prepareLoad(ctx context.Context) {
	if r.under = r.load.epochs; r.epochs != nil || r.under == nil || r.load.anew != nil {
		r.under = r.asked(ctx) // also to see whether what is replaced is still valid
	}
	r.under.Prepare(ctx)
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
	return r.load.policy.loadError(r.load.key, got.Message)
}

// identify makes the origin of the load, if it has one, part of the token for its lease, so that whoever finds the lease knows
// whose load it is.
func (r *rebuild) identify(ctx context.Context) {
	if origin := r.guard.cfg.Hooks.origin(ctx); origin != "" {
		r.token = protocol.NewToken(origin)
	}
}

// recall gives back a lease that may have been granted without a reply.
func (r *rebuild) recall(err error) {
	if !errors.Is(err, breaker.ErrOpen) {
		r.guard.life.Go(r.giveUp) // nobody waits for it; stop: RedisTimeout and the client's time-outs; joined by Close
	}
}

// tooLate gives back a lease that may have been granted after its flight stopped waiting for the reply.
func (r *rebuild) tooLate(reply send.Reply, err error) {
	if err == nil {
		got, unclear := protocol.ParseAcquired(reply.Cmd)
		if unclear == nil && got.Status != protocol.Granted {
			return
		}
	}
	_ = r.guard.life.Try(r.giveUp) // stop: RedisTimeout. If the Guard is closed, the lease expires.
}

// giveUp releases the lease, also when the flight's context has ended.
func (r *rebuild) giveUp() {
	// If this fails too, the lease expires.
	_, _ = r.guard.link.Do(context.Background(), r.load.valueKey, &send.Call{Script: r.guard.keys.Release(r.load.valueKey, r.token), Rank: send.EndsWork})
}

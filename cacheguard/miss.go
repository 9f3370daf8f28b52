package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/flight"
	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/wake"
)

// mode says how a flight gets its value.
type mode int

const (
	filled     mode = iota // through the lease
	direct                 // from the loader alone
	background             // through the lease, for nobody in particular, without waiting for it
)

// flightKey tells flights apart. Calls that want different types cannot share a value.
type flightKey struct {
	key    string
	shape  protocol.Shape
	mode   mode
	nested bool // for a loader: such flights take no slot, so they must not wait for one that needs a slot

	writing bool // for who updates the key: such flights must not wait for the end of the update
}

// answer is what a flight returns to its callers.
type answer struct {
	value   any // *V
	err     error
	outcome Outcome // of the caller that started the flight, if it loaded
	before  uint64  // value and absence are good for calls that began before this tick; another error is for all
	absent  bool    // err says that there is no such thing
	loaded  uint64  // the tick at which the loader had returned; 0: no loader ran

	// The loader gave up because something it used was cancelled, though not by those who wait for it: nobody's failure but
	// that of the call whose loader it was.
	cancelled bool
}

// answers reports whether the answer is good for a call that began at asked. Joined: another call's loader ran.
func (a *answer) answers(asked uint64, joined bool) bool {
	if a.cancelled {
		return !joined
	}
	return asked < a.before || a.err != nil && !a.absent
}

// missed is a flight for a key that was not in the cache.
type missed struct {
	*Guard
	*job
	breaker *health.Breaker
	token   string
	unfit   []byte       // what the cache has for the key and nobody can use; nil if nothing
	aged    bool         // because it seems too old
	publish func(answer) // has those callers leave for whom it is good
	slot    slot
	last    bool             // it has given Redis up once: when that fails again, it loads without
	woken   int              // how often it was told to ask again
	patient <-chan time.Time // fires when WaitTimeout is over
}

// rebuild returns the value of a key that the read did not find, or found to be unfit.
func (g *Guard) rebuild(ctx context.Context, j *job, asked uint64, unfit []byte) (answer, bool, error) {
	return g.share(ctx, j, filled, asked, func(ctx context.Context, publish func(answer)) answer {
		return g.newMissed(j, unfit, publish).fly(ctx)
	})
}

// share waits for the key's flight, which runs unless there is one under way.
func (g *Guard) share(
	ctx context.Context, j *job, m mode, asked uint64, run flight.Run[answer],
) (a answer, joined bool, err error) {
	t, err := g.flights.Enter(ctx, j.flight(m), run)
	if err != nil {
		return a, false, err
	}
	if t.Joined && g.cfg.Hooks.OnJoin != nil {
		g.cfg.Hooks.OnJoin(j.key)
	}
	a, err = t.Wait(ctx, func(early answer) bool { return early.answers(asked, t.Joined) })
	return a, t.Joined, err
}

func (g *Guard) newMissed(j *job, unfit []byte, publish func(answer)) *missed {
	return &missed{
		Guard: g, job: j, breaker: g.health.Of(j.valueKey), token: rand.Text(), unfit: unfit, aged: j.aged, publish: publish,
	}
}

// fly asks for the value or the lease until it has an answer. The watch stands before the lease is asked for, so that
// no wake-up falls between.
func (m *missed) fly(ctx context.Context) answer {
	waiter := m.inbox.Watch(protocol.LeaseKey(m.valueKey))
	defer waiter.Stop()
	if m.cfg.WaitTimeout > 0 {
		timer := time.NewTimer(m.cfg.WaitTimeout)
		defer timer.Stop()
		m.patient = timer.C
	}
	m.inbox.Start()
	for polls := 0; m.woken <= maxAsks; polls++ {
		if a, done := m.ask(ctx, waiter, polls); done {
			return a
		}
	}
	return m.loadDirectly(ctx, m.job, Loaded)
}

// ask asks once, and does what the reply says. Not done: ask again. Without a slot it does not ask for the lease, which
// must not wait in a queue, but still for the value.
func (m *missed) ask(ctx context.Context, waiter *wake.Waiter, polls int) (a answer, done bool) {
	if m.slot == noSlot {
		m.slot = m.trySlot(m.job)
	}
	r := protocol.Request{Token: m.token, Take: m.slot != noSlot, Inbox: m.inbox.Address(), Unfit: m.unfit, Aged: m.aged}
	runtime.Gosched() // callers that are about to join may do so before the tick, and be covered
	before := m.clock.Tick()
	if m.last && m.owed.has(m.key) { // after the tick: no call that began after the key was owed gets this answer
		m.returnSlot()
		return m.loadDirectly(ctx, m.job, Bypassed), true
	}
	got, err := m.tryAcquire(ctx, r)
	if err == nil && got.Status == protocol.Granted {
		return m.lead(ctx, got), true // the slot is the loader's now
	}
	m.returnSlot()
	switch {
	case err != nil && ctx.Err() != nil: // every caller has left
		return answer{err: closedOr(context.Cause(ctx))}, true
	case err != nil:
		return m.unreachable(ctx, err), true
	case got.Status == protocol.HasValue:
		m.expected.found(true)
		how := Hit
		if polls > 0 {
			how = Shared
		}
		return m.use(got.Value, how, before)
	case got.Status == protocol.Failed:
		return answer{err: m.failure(got), outcome: Shared}, true
	case got.Status == protocol.Writing && m.writing:
		return m.loadDirectly(ctx, m.job, Loaded), true
	case got.Status == protocol.Free:
		m.slot, err = m.takeSlot(ctx, m.job)
		return answer{err: err}, err != nil
	}
	m.pass()
	waiter.Waiting()
	return m.await(ctx, waiter, got, wait{registered: got.Registered, polls: polls, before: before})
}

// tryAcquire asks Redis. When the flight has ended before there is a reply, a lease that was granted is given back. A flight
// that may not take the lease looks first whether there is anything at all: in a process that loads as much as it may there
// mostly is not, and that costs Redis a third.
func (m *missed) tryAcquire(ctx context.Context, r protocol.Request) (protocol.Acquired, error) {
	if m.batch != nil {
		done, err := m.batch.turn(ctx)
		if err != nil {
			return protocol.Acquired{}, err
		}
		defer done()
	}
	if !r.Take && r.Unfit == nil && m.plain {
		cmd, err := m.link.Do(ctx, m.valueKey, &link.Call{Script: m.keys.Exists(m.valueKey), Rank: link.Ordinary})
		if err != nil || cmd.Val() == int64(0) {
			return protocol.Acquired{Status: protocol.Free}, err
		}
	}
	rank := link.Ordinary
	if m.slot == ofOwn {
		rank = link.HoldsSlot
	}
	asked := time.Now()
	cmd, err := m.link.Do(ctx, m.valueKey, &link.Call{Script: m.keys.Acquire(m.valueKey, r), Rank: rank, Late: m.tooLate})
	if err != nil {
		return protocol.Acquired{}, err
	}
	got, err := protocol.ParseAcquired(cmd)
	if !got.FreshAt.IsZero() {
		m.serverClocks.Note(m.key, got.FreshAt, asked)
	}
	return got, err
}

func (m *missed) returnSlot() {
	m.freeSlot(m.slot)
	m.slot = noSlot
}

// unreachable answers when Redis could not be asked for the lease. The reply may be all that was lost.
func (m *missed) unreachable(ctx context.Context, err error) answer {
	m.recall(err)
	reason := m.redisError("acquire", m.key, err)
	if m.cfg.FailClosed {
		return answer{err: reason}
	}
	if m.last {
		return m.loadDirectly(ctx, m.job, Bypassed)
	}
	return m.loadBypassed(ctx, m.job, m.publish)
}

// recall gives back a lease that may have been granted although no reply said so.
func (m *missed) recall(err error) {
	if !errors.Is(err, health.ErrOpen) {
		m.inBackground(m.giveUp)
	}
}

// tooLate gives back a lease that may have been granted after its flight had stopped waiting for the reply.
func (m *missed) tooLate(cmd *redis.Cmd, err error) {
	if err == nil {
		got, unclear := protocol.ParseAcquired(cmd)
		if unclear == nil && got.Status != protocol.Granted {
			return
		}
	}
	_ = m.inTask(m.giveUp) // stop: RedisTimeout. If the Guard is closed, the lease expires.
}

// giveUp releases the lease, also when the flight's context has ended.
func (m *missed) giveUp() {
	// If this fails too, the lease expires.
	_, _ = m.link.Do(context.Background(), m.valueKey, &link.Call{Script: m.keys.Release(m.valueKey, m.token), Rank: link.EndsWork})
}

// failure is the remembered error of a load: itself if it was one of ours, else its text.
func (m *missed) failure(got protocol.Acquired) error {
	if err := m.failures.find(got.Failed); err != nil {
		return err
	}
	return &LoadError{Key: m.key, Message: got.Message}
}

// use makes the answer of an entry. One that cannot be used will be overwritten.
func (m *missed) use(raw []byte, how Outcome, before uint64) (answer, bool) {
	e, value, err := m.decode(raw, m.shape)
	if err != nil {
		m.cfg.Hooks.damaged(m.key, err)
	}
	state := fresh
	if err == nil && how != Shared {
		state = m.freshness(m.key, e)
	}
	switch {
	case err != nil || state == expired:
		m.unfit, m.aged = raw, err == nil
		return answer{}, false
	case state != fresh:
		return answer{}, true // good for nobody: a call that reads such a value has it replaced, too
	}
	if e.Kind == protocol.Absent {
		return answer{err: ErrNotFound, absent: true, outcome: Negative, before: before}, true
	}
	return answer{value: value, outcome: how, before: before}, true
}

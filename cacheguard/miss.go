package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"time"

	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/script"
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
	shape  shape
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
}

// answers reports whether the answer is good for a call that began at asked.
func (a *answer) answers(asked uint64) bool {
	return asked < a.before || a.err != nil && !a.absent
}

// missed is a flight for a key that was not in the cache.
type missed struct {
	*Guard
	*job
	breaker *health.Breaker
	token   string
	unfit   []byte // what the cache has for the key and nobody can use; nil if nothing
	slot    slot
	last    bool             // it has given Redis up once: when that fails again, it loads without
	woken   int              // how often it was told to ask again
	patient <-chan time.Time // fires when WaitTimeout is over
}

// rebuild returns the value of a key that the read did not find, or found to be unfit.
func (g *Guard) rebuild(ctx context.Context, j *job, unfit []byte) (answer, bool, error) {
	return g.share(ctx, j, filled, func(ctx context.Context) answer {
		return g.newMissed(j, unfit).fly(ctx)
	})
}

// share waits for the key's flight, which runs unless there is one under way.
func (g *Guard) share(ctx context.Context, j *job, m mode, run func(context.Context) answer) (a answer, joined bool, err error) {
	t, err := g.flights.Enter(ctx, j.flight(m), run)
	if err != nil {
		return a, false, err
	}
	if t.Joined && g.cfg.Hooks.OnJoin != nil {
		g.cfg.Hooks.OnJoin(j.key)
	}
	a, err = t.Wait(ctx)
	return a, t.Joined, err
}

func (g *Guard) newMissed(j *job, unfit []byte) *missed {
	return &missed{Guard: g, job: j, breaker: g.health.Of(j.valueKey), token: rand.Text(), unfit: unfit}
}

// fly asks for the value or the lease until it has an answer. The watch stands before the lease is asked for, so that
// no wake-up falls between.
func (m *missed) fly(ctx context.Context) answer {
	waiter := m.inbox.Watch(leaseKey(m.valueKey))
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
	r := request{token: m.token, take: m.slot != noSlot, inbox: m.inbox.Address(), unfit: m.unfit}
	runtime.Gosched() // callers that are about to join may do so before the tick, and be covered
	before := m.clock.Tick()
	if m.last && m.owed.has(m.key) { // after the tick: no call that began after the key was owed gets this answer
		m.returnSlot()
		return m.loadDirectly(ctx, m.job, Bypassed), true
	}
	got, err := m.tryAcquire(ctx, r)
	if err == nil && got.status == "lease" {
		return m.lead(ctx, got), true // the slot is the loader's now
	}
	m.returnSlot()
	switch {
	case err != nil:
		return m.unreachable(ctx, err), true
	case got.status == "value":
		how := Hit
		if polls > 0 {
			how = Shared
		}
		return m.use(got.value, how, before)
	case got.status == "failed":
		return answer{err: m.failure(got), outcome: Shared}, true
	case got.status == "writing" && m.writing:
		return m.loadDirectly(ctx, m.job, Loaded), true
	case got.status == "free":
		m.slot, err = m.takeSlot(ctx, m.job)
		return answer{err: err}, err != nil
	}
	m.pass()
	waiter.Waiting()
	return m.await(ctx, waiter, got, wait{registered: got.registered, polls: polls, before: before})
}

// tryAcquire asks Redis, unless that does not answer these days.
func (m *missed) tryAcquire(ctx context.Context, r request) (acquired, error) {
	defer m.turn(ctx)()
	p := m.place(ctx, m.acquire(r), false)
	defer p.Quit()
	report := m.breaker.Record
	if !p.Carried() {
		permit, err := m.breaker.Allow()
		if err != nil {
			return acquired{}, err
		}
		report = permit.Done
	}
	got, err := bounded(ctx, m.Guard, func(ctx context.Context) (acquired, error) {
		return parseAcquired(p.Run(ctx))
	}, m.tooLate)
	m.report(p, err, report)
	return got, err
}

// report tells the breaker what became of a call: once of a request, as one that is lost is one failure. GetMany has one
// under way at a time, so that of all its calls is told.
func (m *missed) report(p *script.Place, err error, report func(error)) {
	if p.Told() {
		m.health.Failed(err)
		return
	}
	report(err)
	if err != nil && m.batch != nil {
		for range p.Carries() {
			m.breaker.Record(err)
		}
	}
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
	return m.loadBypassed(ctx, m.job)
}

// recall gives back a lease that may have been granted although no reply said so.
func (m *missed) recall(err error) {
	if !errors.Is(err, health.ErrOpen) {
		m.inBackground(m.giveUp)
	}
}

// tooLate gives back a lease that may have been granted after its flight had stopped waiting for the reply.
func (m *missed) tooLate(got acquired, err error) {
	if err != nil || got.status == "lease" {
		m.giveUp()
	}
}

// giveUp releases the lease, whatever became of the context.
func (m *missed) giveUp() {
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.RedisTimeout)
	defer cancel()
	_ = m.release(ctx) // if this fails too, the lease expires
}

// failure is the remembered error of a load: itself if it was one of ours, else its text.
func (m *missed) failure(got acquired) error {
	if err := m.failures.find(got.failed); err != nil {
		return err
	}
	return &LoadError{Key: m.key, Message: got.message}
}

// use makes the answer of an entry. One that cannot be used will be overwritten.
func (m *missed) use(raw []byte, how Outcome, before uint64) (answer, bool) {
	e, value, err := m.decode(raw, m.shape)
	if err != nil {
		m.cfg.Hooks.damaged(m.key, err)
	}
	if err != nil || how != Shared && m.freshness(e) == expired {
		m.unfit = raw
		return answer{}, false
	}
	if e.kind == kindAbsent {
		return answer{err: ErrNotFound, absent: true, outcome: Negative, before: before}, true
	}
	return answer{value: value, outcome: how, before: before}, true
}

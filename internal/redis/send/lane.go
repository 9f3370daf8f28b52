package send

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// maxFlying bounds the parcels of a lane that are in flight, also slow ones that have given their credit back.
const maxFlying = 32

// queue is what waits to be sent. Its methods are called with the lane's mutex held.
type queue interface {
	// take returns the next parcel, of requests that somebody waits for; nil if there is none. Of what is urgent only:
	// while the breaker is open. An answer takes about trip; idle: nothing is in flight.
	take(urgentOnly bool, trip time.Duration, idle bool) parcel
	// drain takes out what take(true) would leave, or everything.
	drain(everything bool) []parcel
	// full reports whether a whole parcel waits already.
	full() bool
	empty() bool
}

// parcel is what one request to Redis carries.
type parcel interface {
	// under is the context that it is carried with: it has the values of its first request's, and ends with another.
	under(ends context.Context) context.Context
	// carry sends it and waits for the replies, which it keeps to itself.
	carry(ctx context.Context) outcome
	// longer is how much longer than others it may take, as it has so many requests.
	longer() time.Duration
	// deliver hands the replies out.
	deliver()
	// fail answers all of its requests with the error. Unlike all else it may be called while carry runs.
	fail(err error)
	// late is called instead of deliver when it had failed before carry returned.
	late()
}

// outcome is what the replies to a parcel say of Redis.
type outcome struct {
	err    error // nil: it can serve
	pauses bool  // the client may have asked several times, with pauses, or for connections: what that took says nothing of Redis
	bytes  int   // of values that were read
}

// note notes the error of a reply.
func (o *outcome) note(l *Link, err error) {
	l.breakers.Failed(err)
	o.pauses = o.pauses || paused(err)
	if !breaker.Unavailable(err) {
		o.err = nil // any answer says that Redis can serve
	}
}

// flight is a parcel in flight.
type flight struct {
	parcel    parcel
	worker    *worker
	permit    breaker.Permit
	sent      time.Time
	slowAt    time.Time
	deadline  time.Time
	took      time.Duration // until there was an answer, or it was given up
	slow      bool          // it has given its credit back
	givenUp   bool
	reprieves int
}

// lane carries the reads, or the calls, of one part of the keyspace.
type lane struct {
	link     *Link
	breaker  *breaker.Breaker
	apart    bool         // see RunApart
	node     goredis.Node // that all of it goes to; nil: the client finds it
	replicas int          // that have to acknowledge what is written
	most     int          // parcels in flight

	mu        sync.Mutex
	closed    bool
	queue     queue
	arrived   uint64    // counts requests, to see whether more are on their way
	flying    []*flight // oldest first
	credits   int       // that are in use
	spare     int       // that there are beside those for the round trip
	gathering bool      // a worker is about to take the next parcel
	idle      int       // workers that rest
	bytes     uint64    // of values that were read
	trip      trip
	landed    time.Time       // when there was a reply
	alarm     lifecycle.Alarm // calls overdue

	noWrites noWrites

	wake  chan struct{} // has one worker gather; there is room for all
	ended chan struct{} // closed with the lane
}

func newLane(link *Link, b *breaker.Breaker, q queue) *lane {
	l := &lane{link: link, breaker: b, queue: q, most: maxFlying}
	l.alarm = lifecycle.NewAlarm(l.overdue)
	l.wake, l.ended = make(chan struct{}, maxFlying+1), make(chan struct{})
	return l
}

// mayFlyLocked reports whether there is a credit.
func (l *lane) mayFlyLocked() bool {
	return l.credits < l.trip.credits()+l.spare && len(l.flying) < l.mostLocked()
}

// mostLocked is how many parcels may be in flight. Where all replies take so long that parcels give their credits back
// before them, as if they hung, a lane would take all connections of the client, and others would wait for one until
// their time-out, or for the greeting of a new one.
func (l *lane) mostLocked() int {
	quarter := l.link.timeout / slowShare
	switch {
	case l.apart:
	case l.breaker.Recent() > quarter:
		return firstCredits
	case len(l.flying) > 0 && l.flying[0].slow && time.Since(l.landed) > quarter: // nobody knows yet
		return firstCredits + 1 // as many failures as open a breaker
	}
	return l.most
}

// dispatchLocked makes a worker take the next parcel, if there is one and a credit for it. While the breaker is open no
// credit is needed to be refused.
func (l *lane) dispatchLocked() {
	if l.gathering || l.queue.empty() || !l.mayFlyLocked() && !l.breaker.IsOpen() {
		return
	}
	l.gathering = true
	if l.idle > 0 {
		l.idle--
		l.wake <- struct{}{} // does not wait: see its size
		return
	}
	w := newWorker(l)
	l.link.running.Go(w.run) // owner: the Link; stop: idleness, close, or its parcel's failure; joined by Close
}

// arrivals is how many requests have come so far.
func (l *lane) arrivals() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.arrived
}

// take gives the worker, which gathers, its next parcel. None: the worker is idle. take also returns the parcels that
// the breaker refuses, to be answered outside of the mutex.
func (l *lane) take(w *worker) (f *flight, refused []parcel) {
	permit, refusal := l.breaker.Allow()
	l.mu.Lock()
	l.gathering = false
	if refusal != nil {
		refused = l.queue.drain(false)
	}
	var p parcel
	if l.mayFlyLocked() {
		p = l.queue.take(refusal != nil, l.trip.smooth, len(l.flying) == 0)
	}
	if p != nil {
		f = l.flyLocked(p, w)
		f.permit = permit
		l.dispatchLocked()
	} else {
		l.idle++
	}
	l.mu.Unlock()
	if p == nil {
		permit.Done(context.Canceled) // says nothing of Redis
	}
	return f, refused
}

// flyLocked starts the clock of a parcel.
func (l *lane) flyLocked(p parcel, w *worker) *flight {
	now, f := time.Now(), &w.flight
	*f = flight{parcel: p, worker: w, sent: now, slowAt: now.Add(l.link.timeout / slowShare), deadline: now.Add(l.link.timeout + p.longer())}
	l.flying = append(l.flying, f)
	l.credits++
	l.alarm.Set(f.slowAt)
	return f
}

// returnCreditLocked returns the credit of a flight once: when it is slow, or when it lands.
func (l *lane) returnCreditLocked(f *flight) {
	if !f.slow {
		f.slow = true
		l.credits--
	}
}

// complete lands the flight of a worker, and reports whether it was not given up, as else its worker was, too. The
// worker gathers the next parcel if there is a credit, as its callers may be about to ask again and share one.
func (l *lane) complete(f *flight, o outcome) (gathers, goesOn bool) {
	if !l.land(f, o) {
		f.parcel.late()
		return false, false
	}
	l.report(f, o)
	l.mu.Lock()
	if gathers = !l.gathering && l.mayFlyLocked(); gathers {
		l.gathering = true
	} else {
		l.idle++
	}
	l.mu.Unlock()
	f.parcel.deliver()
	return gathers, true
}

// land reports false if the flight was given up.
func (l *lane) land(f *flight, o outcome) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.givenUp {
		return false
	}
	now := time.Now()
	f.took = now.Sub(f.sent)
	if o.err == nil {
		l.trip.add(now, f.took)
		l.landed = now
	}
	l.bytes += uint64(o.bytes)
	l.flying = slices.DeleteFunc(l.flying, func(other *flight) bool { return other == f })
	l.returnCreditLocked(f)
	return true
}

// report reports a parcel's outcome to the breaker. When that opens it, the queue is answered at once. The user's hook
// may be called, so the caller holds no mutex, and no worker that others wait for is about to gather.
func (l *lane) report(f *flight, o outcome) {
	if !l.apart && (o.err == nil && !o.pauses || errors.Is(o.err, ErrTimeout)) {
		l.breaker.Took(f.took)
	}
	f.permit.Done(o.err)
	if o.err != nil && l.breaker.IsOpen() {
		l.link.failQueued(l.breaker)
	}
}

// failQueued answers what waits for a breaker's part of the keyspace.
func (l *Link) failQueued(b *breaker.Breaker) {
	for _, lane := range slices.Concat(l.reads, l.calls) { // what goes apart is sent all the same
		if lane.breaker == b {
			lane.drain(false, b.Refusal())
		}
	}
}

func (l *lane) drain(everything bool, err error) {
	l.mu.Lock()
	refused := l.queue.drain(everything)
	l.mu.Unlock()
	for _, p := range refused {
		p.fail(err)
	}
}

func (l *lane) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.ended)
	}
	l.mu.Unlock()
	l.drain(true, ErrClosed)
}

package breaker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// ErrOpen says that Redis was not asked, because it has not answered for a while.
var ErrOpen = errors.New("redis is not asked for a moment, as it did not answer")

// openError is ErrOpen, and names what Redis failed with last. It does not match that, as nobody was asked.
type openError struct{ last error }

func (e *openError) Error() string { return ErrOpen.Error() + ": " + e.last.Error() }
func (*openError) Unwrap() error   { return ErrOpen }

const (
	maxConsecutive = 5                // failures in a row that open a breaker
	window         = 10 * time.Second // or, in this time,
	minRequests    = 20               // of at least that many operations
	failingShare   = 2                // one in that many

	// How long an open breaker waits before each probe. Drawn once for each breaker, so that the instances of a fleet
	// do not come back together.
	shortestPause = 250 * time.Millisecond
	longestPause  = 500 * time.Millisecond
)

// Breaker is the circuit breaker of one part of the keyspace.
type Breaker struct {
	cb *gobreaker.TwoStepCircuitBreaker[struct{}]

	onChange  func(open bool)
	onSlow    func(slow bool)
	onFailure func()
	probe     func() error    // asks Redis whether it serves the part
	pause     time.Duration   // before each probe
	life      *lifecycle.Life // joins what probes

	told     atomic.Bool // what onChange was told last
	toldSlow atomic.Bool // and onSlow

	latency

	last atomic.Pointer[openError] // what it failed with

	// Until then operations are counted, by clock.Mono. It lies a window after the last failure: as long as
	// all is well nothing is counted, which costs nothing.
	countUntil atomic.Int64

	mu      sync.Mutex
	open    bool
	probing bool          // somebody does, until the breaker is not open
	opened  chan struct{} // closed while the breaker is not
}

func newBreaker(life *lifecycle.Life, probe func() error, onChange func(open bool), onFailure func()) *Breaker {
	b := &Breaker{
		onChange: onChange, onFailure: onFailure, probe: probe, life: life, opened: make(chan struct{}),
		pause: shortestPause + rand.N(longestPause-shortestPause), latency: latency{born: time.Now()},
	}
	b.figures.Store(new(figures)) // nothing is known before the first turn
	b.cb = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:      window,
		BucketPeriod:  window / 10,
		Timeout:       b.pause,
		ReadyToTrip:   isFailing,
		OnStateChange: func(_ string, _, to gobreaker.State) { b.set(to != gobreaker.StateClosed) },
		IsSuccessful:  func(err error) bool { return !Unavailable(err) },
		IsExcluded:    func(err error) bool { return errors.Is(err, context.Canceled) },
	})
	return b
}

func isFailing(c gobreaker.Counts) bool {
	return c.ConsecutiveFailures >= maxConsecutive ||
		c.Requests >= minRequests && c.TotalFailures*failingShare >= c.Requests
}

// set is called with gobreaker's mutex held.
func (b *Breaker) set(open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case open && !b.open:
		close(b.opened)
		b.probing = b.probing || b.life.Try(b.probeUntilClosed) // stop: it closes, or the Set does; its probe has a time-out
	case !open && b.open:
		b.opened = make(chan struct{})
		b.forget()
	}
	b.open = open
}

// probeUntilClosed finds out when Redis serves again, so that no caller has to wait for that.
func (b *Breaker) probeUntilClosed() {
	pause := b.pause + time.Millisecond // the breaker must have waited for longer than its own
	for b.goOnProbing() && b.life.Sleep(context.Background(), pause) {
		if report, err := b.cb.Allow(); err == nil {
			err := b.probe()
			b.failed(err)
			report(err)
			b.tell()
		}
	}
}

func (b *Breaker) goOnProbing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = b.open
	return b.open
}

// Permit is the right to try an operation.
type Permit struct {
	breaker *Breaker
	report  func(error) // nil: not counted unless it fails
}

// Allow asks whether an operation may be tried; if not, the error is Refusal's. The permit's Done is to be called once,
// also of an operation that is tried all the same.
func (b *Breaker) Allow() (Permit, error) {
	until := b.countUntil.Load()
	if until == 0 {
		return Permit{breaker: b}, nil
	}
	if b.IsOpen() {
		return Permit{breaker: b}, b.Refusal()
	}
	report, err := b.cb.Allow()
	if err != nil {
		return Permit{breaker: b}, b.Refusal()
	}
	if until < int64(clock.Mono()) && b.cb.State() == gobreaker.StateClosed {
		b.countUntil.CompareAndSwap(until, 0)
	}
	return Permit{breaker: b, report: report}, nil
}

// Refusal is the error of what is not asked while the breaker is open: ErrOpen, with what the last request failed with.
func (b *Breaker) Refusal() error {
	if last := b.last.Load(); last != nil {
		return last
	}
	return ErrOpen
}

// failed reports whether the error says that Redis cannot serve, and keeps it for Refusal, unless it is one.
func (b *Breaker) failed(err error) bool {
	if !Unavailable(err) || errors.Is(err, context.Canceled) {
		return false
	}
	if !errors.Is(err, ErrOpen) {
		b.last.Store(&openError{err})
	}
	return true
}

// Done reports the result of the operation.
func (p Permit) Done(err error) {
	b := p.breaker
	if b.failed(err) {
		b.countUntil.Store(int64(clock.Mono() + window))
		b.onFailure()
	}
	if p.report == nil && b.countUntil.Load() != 0 && !b.IsOpen() {
		p.report, _ = b.cb.Allow() // refused: it has opened since, and does not need this one
	}
	if p.report != nil {
		p.report(err)
		b.tell()
	}
}

// Record counts an operation that was tried without asking.
func (b *Breaker) Record(err error) { Permit{breaker: b}.Done(err) }

// Opened returns a channel that is closed when the breaker opens, or is open already.
func (b *Breaker) Opened() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}

// IsOpen reports whether the breaker is open: until a probe was answered.
func (b *Breaker) IsOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// tell reports changes, outside of all mutexes.
func (b *Breaker) tell() {
	tell(&b.told, b.IsOpen, b.onChange)
	tell(&b.toldSlow, b.IsSlow, b.onSlow)
}

// tell reports a change. It looks again after that: a late caller must not have the last word.
func tell(told *atomic.Bool, is func() bool, hear func(bool)) {
	for {
		now := is()
		if told.Swap(now) == now {
			return
		}
		if hear != nil {
			hear(now)
		}
	}
}

// Unavailable reports whether the error of an operation says that Redis cannot serve: there was no answer, or it was
// one that has nothing to do with the operation. Other answers, such as OOM to a write, are about what was asked.
func Unavailable(err error) bool {
	if err == nil {
		return false
	}
	if _, answered := script.Answer(err); !answered {
		return true
	}
	return script.Says(err, "LOADING", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "max number of clients")
}

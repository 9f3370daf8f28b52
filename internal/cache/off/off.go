// Package off says why a call may not go to the cache: it is turned off for the process or the fleet, Config.Gate says
// no, or an invalidation of the key has not reached Redis yet.
package off

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// ErrBypassed is why nothing is read while somebody wants that.
var (
	ErrBypassed = errors.New("the cache is bypassed")

	errPending = errors.New("an invalidation is still to be sent")
)

// Reason is why a call may have to go past the cache.
type Reason uint32

// The reasons. For the gate, what is pending and intents they say that it is worth asking.
const (
	here    Reason = 1 << iota // in this process
	fleet                      // in all
	LookDue                    // it is time to see whether the fleet does
	gate                       // somebody asks for each call
	Pending                    // invalidations of some keys are
	Intents                    // some stand
)

// Config is what a Switch needs of its Guard.
type Config struct {
	Redis            script.Processor
	Prefix, Instance string
	Timeout          time.Duration // of an operation on Redis
	Life             *lifecycle.Life
	Pending          interface{ IsPending(key string) bool } // an invalidation

	Gate func(ctx context.Context, key string) error // nil: of a call that may use the cache; nil itself: all may

	// Changed says whether the cache is bypassed, and until when; zero: until it is turned on again. It is called under
	// the Switch's mutex.
	Changed func(on bool, until time.Time)
}

// Switch says whether a Guard's cache is off. Use Open.
type Switch struct {
	Config

	reasons atomic.Uint32 // in one word, so that a hit checks only one

	mu     sync.Mutex
	closed bool
	until  time.Time   // in the fleet; zero: it is not
	end    *time.Timer // fires then
	look   *time.Timer // fires when it is time to look again
	looked time.Time   // when Redis was last asked about the fleet
}

// Open opens the zero Switch, which is on, as far as is known.
func (s *Switch) Open(cfg Config) {
	s.Config = cfg
	s.Put(LookDue, true)
	s.Put(gate, cfg.Gate != nil)
}

// None reports whether nothing speaks against any call.
func (s *Switch) None() bool { return s.reasons.Load() == 0 }

// Has reports whether one of the reasons is there.
func (s *Switch) Has(r Reason) bool { return Reason(s.reasons.Load())&r != 0 }

// Put sets or clears a reason.
func (s *Switch) Put(r Reason, is bool) {
	if is {
		s.reasons.Or(uint32(r))
	} else {
		s.reasons.And(^uint32(r))
	}
}

// Why is why the key must not be read for the call; nil if it may be. It asks about the process, the fleet, the gate,
// and what is pending.
func (s *Switch) Why(ctx context.Context, key string) error {
	if s.Has(LookDue) {
		s.lookLater()
	}
	switch {
	case s.Bypassed():
		return ErrBypassed
	case s.Has(gate):
		if err := s.Gate(ctx, key); err != nil {
			return fmt.Errorf("%w: %w", ErrBypassed, err)
		}
	}
	if s.Config.Pending.IsPending(key) {
		return errPending
	}
	return nil
}

// Bypassed reports whether the cache is off for all keys.
func (s *Switch) Bypassed() bool { return s.Has(here | fleet) }

// lookEvery is how often a Guard in use checks whether the fleet bypasses the cache.
const lookEvery = 2 * time.Second

// FleetKey is where Redis has the bypass of the fleet.
func (s *Switch) FleetKey() string { return s.Prefix + ":bypass" }

// Here turns the cache off, or on again, in this process.
func (s *Switch) Here(off bool) { s.change(func() { s.Put(here, off) }) }

// Fleet turns the cache off in all processes for that long; 0 turns it on again.
func (s *Switch) Fleet(ctx context.Context, d time.Duration) error {
	args := []any{"set", s.FleetKey(), s.Instance, "px", script.Millis(d)}
	if d == 0 {
		args = []any{"del", s.FleetKey()}
	}
	asked := time.Now()
	err := lifecycle.Within(context.WithoutCancel(ctx), s.Life, s.Timeout, func(ctx context.Context) error {
		return script.Send(ctx, s.Redis, args...).Err()
	})
	if err == nil {
		s.Learn(asked, d)
	}
	return err
}

// Learn notes Redis' answer about the fleet to a question asked at the time. An answer to an earlier question than the
// last is ignored.
func (s *Switch) Learn(asked time.Time, left time.Duration) {
	s.change(func() {
		if asked.Before(s.looked) {
			return
		}
		if s.looked, s.until = asked, (time.Time{}); left > 0 {
			s.until = asked.Add(left)
		}
	})
}

// change changes what is known, and redirects calls accordingly.
func (s *Switch) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	f()
	stop(s.end)
	left := time.Until(s.until)
	if left > 0 { // owner: the Guard; stop: Close; it does not wait for anything
		s.end = time.AfterFunc(left, func() { s.change(func() {}) })
	} else {
		s.until = time.Time{}
	}
	s.Put(fleet, left > 0)
	s.Changed(s.Bypassed(), s.until)
}

// lookLater looks in the background, and again when a call comes after the pause.
func (s *Switch) lookLater() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.Has(LookDue) {
		return // another call does it
	}
	s.Put(LookDue, false)
	_ = s.Life.Try(s.ask)                                               // if it is being closed, nobody needs to know; stop: Timeout
	s.look = time.AfterFunc(lookEvery, func() { s.Put(LookDue, true) }) // owner: the Guard; stop: Close
}

// ask asks Redis. Without an answer, nothing changes.
func (s *Switch) ask() {
	asked := time.Now()
	left, err := lifecycle.Bounded(context.Background(), s.Life, s.Timeout, func(ctx context.Context) (int64, error) {
		return script.Send(ctx, s.Redis, "pttl", s.FleetKey()).Int64()
	})
	if err == nil {
		s.Learn(asked, time.Duration(left)*time.Millisecond) // below 0: it is not there
	}
}

// Close stops looking.
func (s *Switch) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	stop(s.end)
	stop(s.look)
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

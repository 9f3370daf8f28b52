package off

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

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

// Package bypass is the switch that turns the cache off: on one instance, or on all instances with a key in Redis.
package bypass

import (
	"context"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// lookEvery is how often a Guard in use checks whether the fleet bypasses the cache.
const lookEvery = 2 * time.Second

// Config is what a Switch needs of its Guard.
type Config struct {
	Redis            script.Processor
	Prefix, Instance string
	Timeout          time.Duration // of an operation on Redis
	Life             *lifecycle.Life

	// Changed says whether the cache is bypassed, and until when; zero: until it is turned on again. It is called under the Switch's mutex.
	Changed func(on bool, until time.Time)

	// LookDue notes whether calls have to look, with LookLater, and returns whether they had.
	LookDue func(due bool) (was bool)
}

// Switch says whether a Guard bypasses the cache. Use New.
type Switch struct {
	Config

	mu     sync.Mutex
	closed bool
	here   bool        // on this instance
	until  time.Time   // on all; zero: not
	end    *time.Timer // fires then
	look   *time.Timer // fires when it is time to look again
	looked time.Time   // when Redis was last asked about the fleet
}

// New makes a Switch that is off, as far as is known.
func New(cfg Config) *Switch { return &Switch{Config: cfg} }

// Key is where Redis has the bypass of the fleet.
func (b *Switch) Key() string { return b.Prefix + ":bypass" }

// Here turns the cache off, or on again, on this instance.
func (b *Switch) Here(on bool) { b.change(func(b *Switch) { b.here = on }) }

// Fleet turns the cache off on all instances for that long; 0 turns it on again.
func (b *Switch) Fleet(ctx context.Context, d time.Duration) error {
	args := []any{"set", b.Key(), b.Instance, "px", script.Millis(d)}
	if d == 0 {
		args = []any{"del", b.Key()}
	}
	asked := time.Now()
	_, err := lifecycle.Bounded(context.WithoutCancel(ctx), b.Life, b.Timeout, func(ctx context.Context) (any, error) {
		return nil, script.Send(ctx, b.Redis, args...).Err()
	}, nil)
	if err == nil {
		b.Learn(asked, d)
	}
	return err
}

// change changes what is known, and redirects calls accordingly.
func (b *Switch) change(f func(*Switch)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	f(b)
	b.applyLocked()
}

// Learn notes Redis' answer about the fleet to a question asked at the time. An answer to an earlier question than
// the last is ignored.
func (b *Switch) Learn(asked time.Time, left time.Duration) {
	b.change(func(b *Switch) {
		if asked.Before(b.looked) {
			return
		}
		if b.looked, b.until = asked, (time.Time{}); left > 0 {
			b.until = asked.Add(left)
		}
	})
}

func (b *Switch) applyLocked() {
	left := time.Duration(0)
	if !b.until.IsZero() {
		left = time.Until(b.until)
	}
	if b.end != nil {
		b.end.Stop()
		b.end = nil
	}
	if left > 0 { // owner: the Guard; stop: close; it does not wait for anything
		b.end = time.AfterFunc(left, func() { b.change(func(*Switch) {}) })
	}
	until := b.until
	if left <= 0 {
		until = time.Time{}
	}
	b.Changed(b.here || left > 0, until)
}

// LookLater looks in the background, and again when a call comes after the pause.
func (b *Switch) LookLater() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || !b.LookDue(false) {
		return // another call does it
	}
	_ = b.Life.Try(b.ask)                                          // if it is being closed, nobody needs to know; stop: RedisTimeout
	b.look = time.AfterFunc(lookEvery, func() { b.LookDue(true) }) // owner: the Guard; stop: close
}

// ask asks Redis. Without an answer, nothing changes.
func (b *Switch) ask() {
	asked := time.Now()
	left, err := lifecycle.Bounded(context.Background(), b.Life, b.Timeout, func(ctx context.Context) (int64, error) {
		return script.Send(ctx, b.Redis, "pttl", b.Key()).Int64()
	}, nil)
	if err == nil {
		b.Learn(asked, time.Duration(left)*time.Millisecond) // below 0: it is not there
	}
}

// Close stops looking.
func (b *Switch) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, timer := range []*time.Timer{b.end, b.look} {
		if timer != nil {
			timer.Stop()
		}
	}
}

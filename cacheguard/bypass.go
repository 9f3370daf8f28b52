package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/script"
)

const (
	// lookEvery is how often a Guard in use checks whether the fleet bypasses the cache.
	lookEvery = 2 * time.Second

	longestBypass = 24 * time.Hour
)

// errBypassed is why nothing is read.
var errBypassed = errors.New("the cache is bypassed")

// Bypass turns the cache off for this Guard, or on again. It is for when you doubt that the cached values are right. Calls that
// begin while the cache is off load without it, with the outcome bypassed, also with FailClosed. Their loads are shared and
// bounded as usual, and store nothing. Invalidate and Update work as usual, so the cache stays right for other instances, and
// for this one when it is on again. Loads that are under way end normally.
//
// Bypass(false) does not end a BypassFleet.
func (g *Guard) Bypass(on bool) {
	if g != nil {
		g.bypass.change(func(b *bypass) { b.here = on })
	}
}

// BypassFleet is Bypass(true) for all Guards with this Prefix, for d, at most 24 hours. It ends by itself, so that nobody can
// forget it; 0 ends it now. A later call replaces an earlier one.
//
// This Guard bypasses at once. Others check every 2 seconds while they are in use, without delaying a call, so they follow within 2
// seconds and a round trip. A Guard that was not in use follows a round trip after its first call. One that cannot reach Redis does
// not change, but a bypass that it knows of still ends in time.
//
// The error is a *RedisError if Redis may not have learned of it. A disabled Guard, which cannot reach others, always
// returns an error.
func (g *Guard) BypassFleet(ctx context.Context, d time.Duration) error {
	switch {
	case g == nil:
		return errNilGuard
	case d < 0 || d > longestBypass || d > 0 && d < time.Millisecond:
		return fmt.Errorf("cacheguard: bypass: %v is neither 0 nor between a millisecond and %v", d, longestBypass)
	case ctx.Err() != nil:
		return fmt.Errorf("cacheguard: bypass: %w", context.Cause(ctx))
	case !g.life.Begin():
		return ErrClosed
	}
	defer g.life.Done()
	if g.cfg.Disabled {
		return fmt.Errorf("cacheguard: bypass: %w", errDisabled)
	}
	key := g.bypass.key()
	args := []any{"set", key, g.cfg.Instance, "px", script.Millis(d)}
	if d == 0 {
		args = []any{"del", key}
	}
	asked := time.Now()
	if _, err := bounded(ctx, g, func(ctx context.Context) (any, error) {
		return nil, g.rdb.Process(ctx, redis.NewCmd(ctx, args...))
	}); err != nil {
		return &RedisError{Op: "bypass", Key: key, Err: err}
	}
	g.bypass.learn(asked, d)
	return nil
}

// bypass says whether a Guard bypasses the cache.
type bypass struct {
	guard *Guard

	mu     sync.Mutex
	closed bool
	here   bool        // on this instance
	until  time.Time   // on all; zero: not
	end    *time.Timer // fires then
	look   *time.Timer // fires when it is time to look again
	looked time.Time   // what is known of the fleet is as of this time
}

func (b *bypass) key() string { return b.guard.cfg.Prefix + ":bypass" }

// change changes what is known, and redirects calls accordingly.
func (b *bypass) change(f func(*bypass)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	f(b)
	b.applyLocked()
}

// learn notes Redis' answer about the fleet to a question asked at the time. An answer to an earlier question than
// the last is ignored.
func (b *bypass) learn(asked time.Time, left time.Duration) {
	b.change(func(b *bypass) {
		if asked.Before(b.looked) {
			return
		}
		if b.looked, b.until = asked, (time.Time{}); left > 0 {
			b.until = asked.Add(left)
		}
	})
}

func (b *bypass) applyLocked() {
	left := time.Duration(0)
	if !b.until.IsZero() {
		left = time.Until(b.until)
	}
	if b.end != nil {
		b.end.Stop()
		b.end = nil
	}
	if left > 0 { // owner: the Guard; stop: close; it does not wait for anything
		b.end = time.AfterFunc(left, func() { b.change(func(*bypass) {}) })
	}
	b.guard.detours.put(bypassing, b.here || left > 0)
	if until := b.until; left > 0 {
		b.guard.journal.Bypass(true, until)
	} else {
		b.guard.journal.Bypass(b.here, time.Time{})
	}
}

// lookLater looks in the background, and again when a call comes after the pause.
func (b *bypass) lookLater() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || !b.guard.detours.has(lookDue) {
		return // another call does it
	}
	b.guard.detours.put(lookDue, false)
	_ = b.guard.life.Try(b.ask)                                                       // if it is being closed, nobody needs to know; stop: RedisTimeout
	b.look = time.AfterFunc(lookEvery, func() { b.guard.detours.put(lookDue, true) }) // owner: the Guard; stop: close
}

// ask asks Redis. Without an answer, nothing changes.
func (b *bypass) ask() {
	asked := time.Now()
	left, err := bounded(context.Background(), b.guard, func(ctx context.Context) (int64, error) {
		cmd := redis.NewCmd(ctx, "pttl", b.key())
		_ = b.guard.rdb.Process(ctx, cmd) // the command keeps its error
		return cmd.Int64()
	})
	if err == nil {
		b.learn(asked, time.Duration(left)*time.Millisecond) // below 0: it is not there
	}
}

func (b *bypass) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, timer := range []*time.Timer{b.end, b.look} {
		if timer != nil {
			timer.Stop()
		}
	}
}

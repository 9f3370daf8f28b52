// Package clock has the clock that entries age by: the machine's or, in a test, one that only the test moves.
//
// It is for times that a user configures in minutes and hours: TTLs, staleness, the memory of absence and failure.
// Time-outs and pauses are about the machine, and follow its clock in tests too.
package clock

import (
	"context"
	"time"
)

// Clock tells the time. The zero value is the machine's clock.
type Clock struct{ manual manual }

// manual is a clock of a test, which only that moves.
type manual interface {
	Now() time.Time
	After(d time.Duration) (over <-chan time.Time, stop func())
}

// By is the clock of a test.
func By(m manual) Clock { return Clock{m} }

// Of is the clock of a *cacheguard.Guard, for packages that keep what grows old in one. Package cacheguard sets it
// before anything runs: to the Guard's users, its clock is nothing.
var Of func(guard any) Clock

// Manual reports whether only a test moves the clock.
func (c Clock) Manual() bool { return c.manual != nil }

// Now is the time.
func (c Clock) Now() time.Time {
	if c.manual == nil {
		return time.Now()
	}
	return c.manual.Now()
}

// base makes monotonic time fit into an integer.
var base = time.Now()

// Mono is the machine's monotonic time, since some moment in the past.
func Mono() time.Duration { return time.Since(base) }

// MonoAt is the clock's time, since the same moment, when Mono says that of the machine's.
func (c Clock) MonoAt(machine time.Duration) time.Duration {
	if c.manual == nil {
		return machine
	}
	return c.manual.Now().Sub(base)
}

// Mono is the clock's time, since the same moment.
func (c Clock) Mono() time.Duration { return c.Since(base) }

// Since is the time since t.
func (c Clock) Since(t time.Time) time.Duration {
	if c.manual == nil {
		return time.Since(t)
	}
	return c.manual.Now().Sub(t)
}

// Sleep waits for d, and reports whether it did: it does not when ctx ends before.
func (c Clock) Sleep(ctx context.Context, d time.Duration) bool {
	over, stop := c.After(d)
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// After returns a channel that receives when d is over. The caller calls stop when it does not wait any more.
func (c Clock) After(d time.Duration) (over <-chan time.Time, stop func()) {
	if c.manual != nil {
		return c.manual.After(d)
	}
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}

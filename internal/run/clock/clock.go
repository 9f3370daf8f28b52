// Package clock has the clock that entries age by: the machine's or, in a test, one that only the test moves.
//
// It is for times that a user configures in minutes and hours: TTLs, staleness, the memory of absence and failure. Time-outs and
// pauses are about the machine, and follow its clock in tests too.
package clock

import "time"

// Clock tells the time. The zero value is the machine's clock.
type Clock struct{ manual *Manual }

// Manual reports whether only a test moves the clock.
func (c Clock) Manual() bool { return c.manual != nil }

// Now is the time.
func (c Clock) Now() time.Time {
	if c.manual == nil {
		return time.Now()
	}
	return c.manual.Now()
}

// At is the time when the machine's clock shows now.
func (c Clock) At(now time.Time) time.Time {
	if c.manual == nil {
		return now
	}
	return c.manual.Now()
}

// Since is the time since t.
func (c Clock) Since(t time.Time) time.Duration {
	if c.manual == nil {
		return time.Since(t)
	}
	return c.manual.Now().Sub(t)
}

// After returns a channel that receives when d is over. The caller calls stop when it does not wait any more.
func (c Clock) After(d time.Duration) (over <-chan time.Time, stop func()) {
	if c.manual != nil {
		return c.manual.after(d)
	}
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}

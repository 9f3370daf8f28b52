package flight

import "sync/atomic"

// Clock orders the beginnings of calls against the moments when answers are asked for. It is a logical
// clock: reading it costs one atomic load of a value that seldom changes, and it ticks only on the way to Redis or to
// a loader, never for a call.
type Clock struct {
	now atomic.Uint64
}

// Now is the moment when a call begins.
func (c *Clock) Now() uint64 { return c.now.Load() }

// Tick returns a moment that is later than every Now and Tick that returned before it: a call that began at t began
// before the tick exactly if t < Tick.
func (c *Clock) Tick() uint64 { return c.now.Add(1) }

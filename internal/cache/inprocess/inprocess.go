// Package inprocess is what a disabled Guard has in place of Redis.
package inprocess

import (
	"errors"
	"sync/atomic"

	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/lock/queue"
)

// ErrDisabled is why a disabled Guard does not ask Redis.
var ErrDisabled = errors.New("the guard is disabled")

// Process is what a disabled Guard has in place of Redis.
type Process struct {
	Clock     *flight.Clock // the Guard's; nil: it is not disabled
	overtaken atomic.Uint64 // the tick of the last invalidation
	Locks     queue.Doors   // by key, each for one caller
}

// Overtake ends the right of loads under way to answer calls that begin from now on.
func (p *Process) Overtake() { p.overtaken.Store(p.Clock.Tick()) }

// GoodBefore returns the tick before which a call must have begun so that a load without Redis, which began at the given tick, may
// answer it. Only a disabled Guard knows whether the load was overtaken: elsewhere, other processes may have done so. The tick
// comes before the check, so a call that begins after a later invalidation begins after the tick.
func (p *Process) GoodBefore(began uint64) uint64 {
	if p.Clock == nil {
		return began
	}
	if now := p.Clock.Tick(); p.overtaken.Load() <= began {
		return now
	}
	return began
}

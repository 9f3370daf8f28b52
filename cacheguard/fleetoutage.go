package cacheguard

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/health"
)

// withoutPermits is how long loads run without permits after Redis did not answer.
const withoutPermits = time.Second

// isOpen reports whether loads need no permits, as Redis does not answer.
func (f *fleetLoads) isOpen() bool {
	f.mu.Lock()
	open := time.Now().Before(f.open)
	f.mu.Unlock()
	breaker := f.guard.health.Of(f.guard.keys.ValueKey(fleetName))
	if open || !breaker.IsOpen() {
		return open
	}
	f.probe(breaker)
	return true
}

// probe finds out whether Redis answers again, in the background. On a cluster, the breaker is that of a part of the slots, in which the
// Guard may have no key that anybody asks for.
func (f *fleetLoads) probe(breaker *health.Breaker) {
	try, err := breaker.Allow()
	if err != nil {
		return // it is too early, or somebody tries already
	}
	probes := f.guard.life.Try(func() { // stop: RedisTimeout
		_, err := f.permits.Inspect(context.Background(), fleetName)
		try.Done(err)
	})
	if !probes {
		try.Done(context.Canceled)
	}
}

// pass lets the loads go that wait, without permits, and for a while those that come. It returns one more such permit.
func (f *fleetLoads) pass(why error) *permit {
	if why != nil {
		_ = f.guard.redisError("permit", fleetName, why) // loads go on without
	}
	f.mu.Lock()
	f.open = time.Now().Add(withoutPermits)
	n := f.waiting
	f.mu.Unlock()
	for range n {
		f.put(new(permit))
	}
	return new(permit)
}

// breaker hears that a circuit breaker has opened or closed.
func (f *fleetLoads) breaker(open bool) {
	if f != nil && open && f.isOpen() {
		_ = f.pass(nil)
	}
}

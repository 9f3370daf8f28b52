package cacheguard

import "time"

// withoutPermits is how long loads run without permits after Redis did not answer.
const withoutPermits = time.Second

// isOpen reports whether loads need no permits, as Redis does not answer.
func (f *fleetLoads) isOpen() bool {
	f.mu.Lock()
	open := time.Now().Before(f.open)
	f.mu.Unlock()
	return open || f.guard.health.Of(f.guard.keys.ValueKey(fleetName)).IsOpen()
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

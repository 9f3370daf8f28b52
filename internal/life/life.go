// Package life is what a lock's Locker has under way, its calls, leases and operations on Redis, and how all that ends.
package life

import (
	"context"
	"sync"
)

// Life belongs to one Locker, which hands out leases of type L.
type Life[L comparable] struct {
	Ending context.Context //nolint:containedctx // ended by Close
	Tasks  sync.WaitGroup  // operations, which may outlast the call that started them

	abort   func(lease L, cause error)
	end     context.CancelCauseFunc
	closing sync.Once
	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup // calls under way; added to under mu, while not closed
	leases  map[L]struct{}
}

// New begins a life. abort ends the trust in a lease with a cause, and gives the lock up.
func New[L comparable](abort func(lease L, cause error)) *Life[L] {
	f := &Life[L]{abort: abort, leases: make(map[L]struct{})}
	f.Ending, f.end = context.WithCancelCause(context.Background())
	return f
}

// Begin registers a call that Close waits for, and reports whether there is a life still. Each true is followed by one Done.
func (f *Life[L]) Begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.calls.Add(1)
	return true
}

// Done ends a call.
func (f *Life[L]) Done() { f.calls.Done() }

// Add adds a lease, of a call that has begun. begin makes it whole, under the mutex: who looks for it finds it so.
func (f *Life[L]) Add(l L, begin func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	begin()
	f.leases[l] = struct{}{}
}

// Remove removes a lease.
func (f *Life[L]) Remove(l L) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.leases, l)
}

// Held are the leases.
func (f *Life[L]) Held() []L {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]L, 0, len(f.leases))
	for l := range f.leases {
		all = append(all, l)
	}
	return all
}

// Close ends Ending with the cause, aborts the leases, joins everything, and calls last. It may be called again.
func (f *Life[L]) Close(cause error, last func()) {
	f.closing.Do(func() {
		f.mu.Lock()
		f.closed = true
		f.mu.Unlock()
		f.end(cause)
		f.calls.Wait() // from here on there are no new leases
		var aborting sync.WaitGroup
		for _, l := range f.Held() {
			aborting.Go(func() { f.abort(l, cause) }) // owner: Close; stop: RedisTimeout; joined below
		}
		aborting.Wait()
		f.Tasks.Wait()
		last()
	})
}

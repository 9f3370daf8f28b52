package lifecycle

import (
	"maps"
	"slices"
	"sync"
)

// Lender is the life of what hands out leases of type L.
type Lender[L comparable] struct {
	*Life

	abort func(lease L, cause error)

	mu     sync.Mutex
	leases map[L]struct{}
}

// NewLender begins a life. abort ends the trust in a lease with a cause, and gives it up.
func NewLender[L comparable](abort func(lease L, cause error)) *Lender[L] {
	return &Lender[L]{Life: New(), abort: abort, leases: make(map[L]struct{})}
}

// Add adds a lease, of a call that has begun. begin makes it whole, under the mutex, so that nobody finds it half made.
func (b *Lender[L]) Add(lease L, begin func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	begin()
	b.leases[lease] = struct{}{}
}

// Remove removes a lease.
func (b *Lender[L]) Remove(lease L) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.leases, lease)
}

// Held are the leases.
func (b *Lender[L]) Held() []L {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.leases))
}

// Close closes the Life. Leases that are left are aborted, all at once.
func (b *Lender[L]) Close(cause error) {
	b.Life.Close(cause, func() {
		var aborting sync.WaitGroup
		for _, lease := range b.Held() {
			aborting.Go(func() { b.abort(lease, cause) }) // owner: Close; stop: RedisTimeout; joined below
		}
		aborting.Wait()
	})
}

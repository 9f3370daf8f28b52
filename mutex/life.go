package mutex

import (
	"context"
	"sync"
)

// life is what a Locker has under way, and how that ends.
type life struct {
	ending context.Context //nolint:containedctx // ended by end
	end    context.CancelCauseFunc
	tasks  sync.WaitGroup // operations, which may outlast the call that started them

	closing sync.Once
	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup // calls under way; added to under mu, while not closed
	leases  map[*Lease]struct{}
}

func newLife() *life {
	f := &life{leases: make(map[*Lease]struct{})}
	f.ending, f.end = context.WithCancelCause(context.Background())
	return f
}

// begin registers a call that close waits for. Each nil is followed by one calls.Done.
func (f *life) begin(names ...string) error {
	for _, name := range names {
		if name == "" {
			return errEmptyName
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	f.calls.Add(1)
	return nil
}

func (f *life) done() { f.calls.Done() }

// add makes the lease, which begins under mu: what looks for it finds it whole.
func (f *life) add(l *Lease, begin func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	begin()
	f.leases[l] = struct{}{}
}

func (f *life) remove(l *Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.leases, l)
}

func (f *life) held() []*Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*Lease, 0, len(f.leases))
	for l := range f.leases {
		all = append(all, l)
	}
	return all
}

// close ends the waits and the leases, joins everything, and calls last.
func (f *life) close(last func()) {
	f.closing.Do(func() {
		f.mu.Lock()
		f.closed = true
		f.mu.Unlock()
		f.end(ErrClosed)
		f.calls.Wait() // from here on there are no new leases
		var unlocking sync.WaitGroup
		for _, l := range f.held() {
			unlocking.Go(func() { // owner: close; stop: RedisTimeout; joined below
				l.hold.Lose(ErrClosed)
				_ = l.Unlock(context.Background()) // if this fails, the lease expires
			})
		}
		unlocking.Wait()
		f.tasks.Wait()
		last()
	})
}

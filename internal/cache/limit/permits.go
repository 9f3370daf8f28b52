package limit

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// How long an instance keeps a permit that it has no load for; while Redis is so slow that asking for one takes longer than a load, for longer.
const (
	keepIdle = 5 * time.Millisecond
	keepSlow = time.Second
)

// permit is one of the fleet's, or an empty one.
type permit struct {
	lease *locker.Lease // nil: it is empty
	uses  int           // loads that have used it
}

// keep makes a permit of a lease. When that is lost, or about to be given back, the permit counts no more: a load that uses it goes on, and waiting
// loads need another one.
func (f *Fleet) keep(lease *locker.Lease) *permit {
	f.kept.Add(1)
	context.AfterFunc(lease.Context(), func() { // owner: the lease; it waits for nothing
		f.kept.Add(-1)
		f.adjust()
	})
	return &permit{lease: lease}
}

// giveBack gives a permit back to the fleet, in the background.
func (f *Fleet) giveBack(p *permit) {
	f.Background(func() { _ = p.lease.Unlock() }) // stop: RedisTimeout. If it fails, the lease ends; if it does not begin, Close gives it back
}

// put makes a permit available to the loads of this instance.
func (f *Fleet) put(p *permit) {
	f.mu.Lock()
	f.hand = append(f.hand, p)
	f.mu.Unlock()
	f.local.Release()
}

// pop returns one of the permits at hand, for a right that was taken, or an empty one; nil: there is none, or none any more.
func (f *Fleet) pop() (p *permit) {
	f.mu.Lock()
	if last := len(f.hand) - 1; last >= 0 {
		p, f.hand, f.unused = f.hand[last], f.hand[:last], min(f.unused, last)
	}
	f.mu.Unlock()
	switch {
	case p == nil && f.Suspended():
		return new(permit)
	case p != nil && p.lease.Context().Err() != nil:
		f.giveBack(p)
		return nil
	}
	return p
}

// release takes a permit back from a load that has ended.
func (f *Fleet) release(p *permit) {
	if p.lease == nil {
		return
	}
	if p.uses++; p.uses >= MaxHandOns && f.waiting.Load() > 0 || p.lease.Context().Err() != nil {
		f.giveBack(p)
		return
	}
	f.put(p)
	f.adjust()
}

// tidyLocked gives back, after a while, the permits at hand that nobody uses.
func (f *Fleet) tidyLocked() {
	if f.tidying || len(f.hand) == 0 {
		return
	}
	f.tidying, f.unused = true, len(f.hand)
	idle := keepIdle
	if f.Breaker.IsSlow() {
		idle = keepSlow
	}
	time.AfterFunc(idle, func() { f.Background(f.tidy) }) // owner: the Fleet; stop: RedisTimeout. Close gives back what there is then
}

// tidy keeps those that were used if asking for others would take long. If others may wait for them, one goes each time.
func (f *Fleet) tidy() {
	slow := f.Breaker.IsSlow()
	f.mu.Lock()
	rest := len(f.hand)
	if slow {
		rest = f.unused
	}
	f.mu.Unlock()
	if slow && rest == 0 && !f.hasSpare() {
		rest = 1
	}
	for ; rest > 0 && f.local.TryAcquire(); rest-- {
		if p := f.pop(); p != nil && p.lease != nil {
			f.giveBack(p)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tidying = false
	f.tidyLocked()
}

// hasSpare reports whether the fleet has permits that nobody waits for, as far as is known.
func (f *Fleet) hasSpare() bool {
	lease, err := f.Permits.TryLock(f.ctx, FleetName)
	if err == nil {
		_ = lease.Unlock() // if it fails, the lease ends
	}
	return !errors.Is(err, lifecycle.ErrNotAcquired)
}

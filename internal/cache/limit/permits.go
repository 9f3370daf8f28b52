package limit

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
)

// put makes a permit available to the loads of this instance.
func (f *Fleet) put(p *permit) {
	f.mu.Lock()
	f.hand = append(f.hand, p)
	f.mu.Unlock()
	f.local.Release()
}

// pop returns one of the permits at hand, for a right that was taken; nil: it is none any more.
func (f *Fleet) pop() *permit {
	f.mu.Lock()
	p := f.hand[len(f.hand)-1]
	f.hand = f.hand[:len(f.hand)-1]
	f.mu.Unlock()
	switch {
	case p.lease == nil && !f.Suspended(): // Redis answers again
		return nil
	case p.lease != nil && p.lease.Context().Err() != nil:
		f.giveBack(p)
		return nil
	}
	return p
}

// release takes a permit back from a load that has ended.
func (f *Fleet) release(p *permit) {
	if p == nil || p.lease == nil {
		return
	}
	p.uses++
	f.mu.Lock()
	waited := f.waiting > 0
	f.mu.Unlock()
	if waited && p.uses >= MaxHandOns || p.lease.Context().Err() != nil {
		f.giveBack(p)
		return
	}
	f.put(p)
	if !waited {
		f.tidyLater()
	}
}

// keep makes a permit of a lease.
func (f *Fleet) keep(lease *locker.Lease) *permit {
	p := &permit{lease: lease}
	f.mu.Lock()
	f.kept++
	p.unwatch = context.AfterFunc(lease.Context(), func() { f.isGone(p) }) // owner: the lease; it waits for nothing
	f.mu.Unlock()
	return p
}

// isGone marks a permit that is lost, or about to be given back, unusable. A load that uses it goes on, and waiting
// loads need another one.
func (f *Fleet) isGone(p *permit) {
	f.mu.Lock()
	if !p.gone {
		p.gone = true
		f.kept--
	}
	f.mu.Unlock()
	f.askForMore()
}

// giveBack gives a permit back to the fleet, in the background.
func (f *Fleet) giveBack(p *permit) {
	p.unwatch()
	if f.Background(func() { _ = p.lease.Unlock() }) { // stop: RedisTimeout. If it fails, the lease ends
		f.isGone(p)
	}
	// Otherwise Close gives it back.
}

// tidyLater gives back, after a while, the permits at hand that nobody uses.
func (f *Fleet) tidyLater() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tidying {
		return
	}
	f.tidying = f.Background(func() { // stop: keepIdle, or f.stop
		idle := keepIdle
		if f.Breaker.IsSlow() {
			idle = keepSlow
		}
		timer := time.NewTimer(idle)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-f.ctx.Done():
		}
		f.mu.Lock()
		f.tidying = false
		f.mu.Unlock()
		for f.local.TryAcquire() {
			if p := f.pop(); p != nil && p.lease != nil {
				f.giveBack(p)
			}
		}
	})
}

// queued is how many loads wait for a permit.
func (f *Fleet) queued() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting
}

package cacheguard

import (
	"context"
	"time"

	"github.com/cacheguard/go/semaphore"
)

// put makes a permit available to the loads of this instance.
func (f *fleetLoads) put(p *permit) {
	f.mu.Lock()
	f.hand = append(f.hand, p)
	f.mu.Unlock()
	f.local.Release()
}

// pop returns one of the permits at hand, for a right that was taken; nil: it is none any more.
func (f *fleetLoads) pop() *permit {
	f.mu.Lock()
	p := f.hand[len(f.hand)-1]
	f.hand = f.hand[:len(f.hand)-1]
	f.mu.Unlock()
	switch {
	case p.lease == nil && !f.isOpen(): // Redis answers again
		return nil
	case p.lease != nil && p.lease.Context().Err() != nil:
		f.giveBack(p)
		return nil
	}
	return p
}

// release takes a permit back from a load that has ended.
func (f *fleetLoads) release(p *permit) {
	if p == nil || p.lease == nil {
		return
	}
	p.uses++
	f.mu.Lock()
	waited := f.waiting > 0
	f.mu.Unlock()
	if waited && p.uses >= maxHandOns || p.lease.Context().Err() != nil {
		f.giveBack(p)
		return
	}
	f.put(p)
	if !waited {
		f.tidyLater()
	}
}

// keep makes a permit of a lease.
func (f *fleetLoads) keep(lease *semaphore.Lease) *permit {
	p := &permit{lease: lease}
	f.mu.Lock()
	f.kept++
	p.unwatch = context.AfterFunc(lease.Context(), func() { f.isGone(p) }) // owner: the lease; it waits for nothing
	f.mu.Unlock()
	return p
}

// isGone hears that a permit is lost, or is about to be given back. A load that uses it goes on, and those that wait need another one.
func (f *fleetLoads) isGone(p *permit) {
	f.mu.Lock()
	if !p.gone {
		p.gone = true
		f.kept--
	}
	f.mu.Unlock()
	f.askForMore()
}

// giveBack gives a permit back to the fleet, in the background.
func (f *fleetLoads) giveBack(p *permit) {
	p.unwatch()
	if f.guard.life.Try(func() { _ = p.lease.Unlock(context.Background()) }) { // stop: RedisTimeout. If it fails, the lease ends
		f.isGone(p)
	}
	// Otherwise Close gives it back.
}

// tidyLater gives back, after a while, the permits at hand that nobody uses.
func (f *fleetLoads) tidyLater() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tidying {
		return
	}
	f.tidying = f.guard.life.Try(func() { // stop: keepIdle, or f.stop
		timer := time.NewTimer(keepIdle)
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

// end has nobody ask any more. It is followed by close, when all loads have ended.
func (f *fleetLoads) end() {
	if f != nil {
		f.stop()
	}
}

// close gives all permits back.
func (f *fleetLoads) close() {
	if f != nil {
		_ = f.permits.Close() // always nil
	}
}

// queued is how many loads wait for a permit.
func (f *fleetLoads) queued() int {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting
}

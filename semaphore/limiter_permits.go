package semaphore

import (
	"context"
	"time"
)

// keepIdle is how long an instance keeps a permit that nobody uses.
const keepIdle = 5 * time.Millisecond

// held is a permit of the fleet that a Limiter has, or an empty one.
type held struct {
	lease *Lease // nil: it is empty
	uses  int
	err   error // why it is empty, for one of those that had to go without
}

// keep makes a permit of a lease. When that is lost, or about to be given back, the permit counts no more: a use goes on, and waiting
// ones need another one.
func (l *Limiter) keep(lease *Lease) *held {
	l.kept.Add(1)
	context.AfterFunc(lease.Context(), func() { // owner: the lease; it waits for nothing
		l.kept.Add(-1)
		l.adjust()
	})
	return &held{lease: lease}
}

// giveBack gives a permit back to the fleet, in the background.
func (l *Limiter) giveBack(p *held) {
	l.fleet.base.Life.Try(func() { _ = p.lease.Unlock(context.Background()) }) // stop: RedisTimeout. If it fails, the lease ends; if it does not begin, Close gives it back
}

// put makes a permit available in this instance.
func (l *Limiter) put(p *held) {
	l.mu.Lock()
	l.hand = append(l.hand, p)
	l.mu.Unlock()
	l.local.Release()
}

// atHand returns a permit without asking anybody, or nil.
func (l *Limiter) atHand() *held {
	for l.local.TryAcquire() {
		if p := l.pop(); p != nil {
			return p
		}
	}
	return l.without()
}

// without returns an empty permit if nobody needs one; else nil.
func (l *Limiter) without() *held {
	if l.isSuspended() {
		return &held{err: l.outage.said()}
	}
	return nil
}

// pop returns one of the permits at hand, for a right that was taken, or an empty one; nil: there is none, or none any more.
func (l *Limiter) pop() (p *held) {
	l.mu.Lock()
	if last := len(l.hand) - 1; last >= 0 {
		p, l.hand = l.hand[last], l.hand[:last]
	}
	l.mu.Unlock()
	switch {
	case p == nil:
		return l.without()
	case p.lease.Context().Err() != nil:
		l.giveBack(p)
		return nil
	}
	return p
}

// release takes a permit back from a use that has ended.
func (l *Limiter) release(p *held) {
	if p.lease == nil {
		return
	}
	if p.uses++; p.uses >= maxHandOns && l.waiting.Load() > 0 || p.lease.Context().Err() != nil {
		l.giveBack(p)
		return
	}
	l.put(p)
	l.adjust()
}

// tidyLocked gives back, after a while, the permits at hand that nobody uses.
func (l *Limiter) tidyLocked() {
	if l.tidying || len(l.hand) == 0 {
		return
	}
	l.tidying = true
	time.AfterFunc(keepIdle, func() { l.fleet.base.Life.Try(l.tidy) }) // owner: the Limiter; stop: RedisTimeout. Close gives back what there is then
}

func (l *Limiter) tidy() {
	l.mu.Lock()
	rest := len(l.hand)
	l.mu.Unlock()
	for ; rest > 0 && l.local.TryAcquire(); rest-- {
		if p := l.pop(); p != nil && p.lease != nil {
			l.giveBack(p)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidying = false
	l.tidyLocked()
}

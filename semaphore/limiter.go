package semaphore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/run/slots"
)

const (
	maxHandOns = 8      // uses of a permit in a row, before it goes back to the fleet, where others may wait for it
	mostName   = 65_536 // bytes
	mostLate   = 3      // times that a request is sent again whose permit was over when it came: to a process that had stood still
)

// Limiter bounds how many loads of a whole fleet run at once, as a Limiter of package cacheguard: each takes a permit of one semaphore. It
// protects a database with few connections from many instances. It is safe for concurrent use, and several Guards may share it.
//
// Uses that find no permit at hand wait in the instance. While the fleet has free permits, the instance asks for one for each of them;
// otherwise it queues for one for every eight. A use that ends passes its permit on to a waiting one: in turn to the oldest, and to that
// with the most callers. After eight uses in a row the permit goes back to the fleet, whose instances get permits first come, first
// served. So a busy instance asks Redis once for several uses, and an instance where nothing waits has no permits.
//
// If Redis does not answer, nobody needs a permit: what asks anew after RedisTimeout, what waits in Redis after TTL. The Limiter looks
// once a second whether Redis answers, and when it does, permits count again. A dead instance keeps its permits for TTL. On a Redis
// Cluster all permits are in one slot; a failover may forget some, because replication is asynchronous. Then that many more run until
// those with the forgotten permits end.
type Limiter struct {
	fleet *Locker
	name  string
	local *slots.Slots // rights to what is at hand or, while Redis does not answer, to an empty permit

	ctx  context.Context //nolint:containedctx // of those who ask; ended by Close
	stop context.CancelFunc

	asking  atomic.Bool  // somebody asks whether there is one to spare
	waiting atomic.Int64 // uses
	kept    atomic.Int64 // permits that the instance has, at hand or in use
	outage  outage

	mu      sync.Mutex
	hand    []*held
	crowd   *crowd // those who wait, or will
	tidying bool   // what nobody uses is about to be given back
}

// LimiterStats is what a Limiter is doing.
type LimiterStats struct {
	Waiting   int  // uses that wait for a permit
	Permits   int  // that this instance has
	Suspended bool // Redis does not answer, so nobody needs a permit
}

// crowd is the uses that wait until none does. It is guarded by the mutex of Limiter.
type crowd struct {
	ctx    context.Context //nolint:containedctx // of those who ask for it
	end    context.CancelFunc
	asks   int  // requests under way
	scarce bool // the fleet had none to spare
}

func newCrowd(ctx context.Context) *crowd {
	c := new(crowd)
	c.ctx, c.end = context.WithCancel(ctx)
	return c
}

// NewLimiter returns a Limiter of cfg.Permits permits of the semaphore with that name. All instances give the same Prefix and name; their
// Permits may differ, each uses its own number (see the package comment). FixedLease, MaxHold and WithoutRedis must be off. The error names
// every field that is out of range. It does no I/O. Close it after the Guards that use it.
func NewLimiter(rdb Redis, name string, cfg Config) (*Limiter, error) {
	var p config.Problems
	if cfg.FixedLease || cfg.MaxHold > 0 || cfg.WithoutRedis != 0 {
		p.Add("FixedLease, MaxHold, WithoutRedis", "a Limiter has none of them: its permits last as long as their uses")
	}
	bad := p.Err()
	if len(name) == 0 || len(name) > mostName {
		bad = errors.Join(bad, fmt.Errorf("the name has %d bytes, not 1 to %d", len(name), mostName))
	}
	fleet, err := open(rdb, cfg, bad)
	if err != nil {
		return nil, err
	}
	l := &Limiter{fleet: fleet, name: name, local: slots.New(0)}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.crowd = newCrowd(l.ctx)
	return l, nil
}

// Close gives all permits back, and returns when everything that the Limiter started has ended. It may be called more than once.
func (l *Limiter) Close() error {
	l.stop()
	return l.fleet.Close()
}

// Stats returns what the Limiter is doing.
func (l *Limiter) Stats() LimiterStats {
	return LimiterStats{Waiting: int(l.waiting.Load()), Permits: int(l.kept.Load()), Suspended: l.isSuspended()}
}

// Try takes a permit that is at hand, or one of the fleet's if that has one to spare, and nobody here waits or asks already; else free is
// nil. It takes at most a round trip, and none once ctx has ended. The caller calls free once, when it is done. An error says why
// nobody needs a permit at the moment; one caller in an outage has it.
func (l *Limiter) Try(ctx context.Context) (free func(), err error) {
	p := l.atHand()
	if p != nil || ctx.Err() != nil || l.waiting.Load() > 0 || l.kept.Load() >= int64(l.fleet.permits) || !l.asking.CompareAndSwap(false, true) {
		return l.freeing(p)
	}
	defer l.asking.Store(false)
	lease, err := l.fleet.TryLock(ctx, l.name)
	switch {
	case err == nil:
		p = l.keep(lease)
	case isUnanswered(ctx, err) && !errors.Is(err, lifecycle.ErrLeaseLost):
		l.pass(err)
		p = l.without()
	}
	return l.freeing(p)
}

// Take waits for a permit; free is nil if ctx has ended, or the Limiter is closed. The caller calls it once, when it is done. Callers is how
// many calls wait at the moment for what is to be done with the permit: it must be quick and must not block. The error is as that of Try.
func (l *Limiter) Take(ctx context.Context, callers func() int) (free func(), err error) {
	p := l.atHand()
	if p != nil {
		return l.freeing(p)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	l.waiting.Add(1)
	defer l.adjust()
	defer l.waiting.Add(-1)
	for p == nil {
		l.adjust()
		if !l.local.Acquire(ctx, callers) {
			return nil, nil //nolint:nilnil // no permit is no error
		}
		p = l.pop()
	}
	return l.freeing(p)
}

func (l *Limiter) freeing(p *held) (free func(), err error) {
	if p == nil {
		return nil, nil //nolint:nilnil // no permit is no error
	}
	return func() { l.release(p) }, p.err
}

// adjust makes the instance ask for as many permits as are wanted. When nobody waits any more, its requests end.
func (l *Limiter) adjust() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.Load() == 0 {
		l.crowd.end()
		l.crowd = newCrowd(l.ctx)
		l.tidyLocked()
	}
	for c := l.crowd; c.asks < l.wantedLocked(c) && l.ctx.Err() == nil; c.asks++ {
		ask := l.fleet.TryLock
		if c.scarce {
			ask = l.fleet.Lock
		}
		if !l.fleet.base.Life.Try(func() { l.request(c, ask) }) { // stop: the crowd's end, or l.stop
			return
		}
	}
}

// wantedLocked returns how many permits the instance should ask for. One in the queue of the fleet for each use would
// cost Redis a heartbeat each, and the first requests would give one instance all permits at once.
func (l *Limiter) wantedLocked(c *crowd) int {
	wanted := int(l.waiting.Load())
	if c.scarce {
		wanted = (wanted + maxHandOns - 1) / maxHandOns
	}
	return min(wanted, l.fleet.permits-int(l.kept.Load()))
}

// request gets a permit of the fleet: first one to spare or, where there was none, in the queue.
func (l *Limiter) request(c *crowd, ask func(context.Context, string) (*Lease, error)) {
	lease, err := ask(c.ctx, l.name)
	if errors.Is(err, lifecycle.ErrNotAcquired) && !l.isEnough(c) {
		lease, err = l.fleet.Lock(c.ctx, l.name)
	}
	for late := 0; late < mostLate && errors.Is(err, lifecycle.ErrLeaseLost) && c.ctx.Err() == nil; late++ {
		lease, err = l.fleet.Lock(c.ctx, l.name)
	}
	switch {
	case err == nil:
		l.put(l.keep(lease))
	case isUnanswered(c.ctx, err):
		l.pass(err)
	}
	l.mu.Lock()
	c.asks--
	l.mu.Unlock()
	l.adjust()
}

// isEnough reports whether a request that found nothing to spare is not to queue, as enough others do.
func (l *Limiter) isEnough(c *crowd) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.scarce = true
	return c.asks > l.wantedLocked(c)
}

// isUnanswered reports whether a request for a permit failed because Redis did.
func isUnanswered(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, lifecycle.ErrNotAcquired) && !errors.Is(err, lifecycle.ErrLockClosed)
}

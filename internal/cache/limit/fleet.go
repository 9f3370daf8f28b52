package limit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/run/slots"
)

const (
	// FleetName is the name of the semaphore of FleetLoads, under the Guard's Prefix.
	FleetName = "fleet-loads"

	// MaxHandOns is how many loads in a row use a permit before it goes back to the fleet, where others may wait for
	// it.
	MaxHandOns = 8

	// mostLate is how often a request is sent again whose permit was over when it came: to a process that had stood still.
	mostLate = 3
)

// Fleet hands the permits of FleetLoads to the loads of this instance. A permit is a lease on the fleet's semaphore. Loads that find none at hand wait
// in the instance. While the fleet has free permits, the instance asks for one for each of them; otherwise it queues for one for every MaxHandOns. A
// load that ends passes its permit to a waiting one: in turn to the oldest, and to that with the most callers (package slots). So a busy instance asks
// the semaphore once for several loads, and an instance where nothing waits has no permits.
//
// A load asks for its permit when it has its slot and the lease of its key. So others that want the same key wait for
// the one with the lease, and need no permits; and a load that waits for a slot of its instance keeps no permit from
// other instances.
//
// When Redis does not answer, loads get empty permits: MaxLoads alone limits them.
type Fleet struct {
	Config
	local *slots.Slots // rights to what is at hand or, while Redis does not answer, to an empty permit

	ctx  context.Context //nolint:containedctx // of those who ask; ended by Close
	stop context.CancelFunc

	asking  atomic.Bool  // a load asks whether there is one to spare
	waiting atomic.Int64 // loads
	kept    atomic.Int64 // permits that the instance has, at hand or in use

	mu      sync.Mutex
	hand    []*permit
	unused  int       // of them, since tidying began: the fewest there were
	crowd   *crowd    // those who wait, or will
	tidying bool      // what nobody uses is about to be given back
	open    time.Time // until then loads need no permits
}

// crowd is the loads that wait until none does. It is guarded by the mutex of Fleet.
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

// newFleet returns nil if FleetLoads is off.
func newFleet(cfg Config) *Fleet {
	if cfg.Permits == nil {
		return nil
	}
	f := &Fleet{Config: cfg, local: slots.New(0)}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.crowd = newCrowd(f.ctx)
	return f
}

// try returns a permit that is at hand, or nil.
func (f *Fleet) try() *permit {
	for f.local.TryAcquire() {
		if p := f.pop(); p != nil {
			return p
		}
	}
	if f.Suspended() {
		return new(permit)
	}
	return nil
}

// ask returns a permit that is at hand, or one of the fleet's if that has one to spare and nobody here waits or asks
// already; or nil.
func (f *Fleet) ask(ctx context.Context) *permit {
	p := f.try()
	if p != nil || f.waiting.Load() > 0 || f.kept.Load() >= int64(f.Permits.Permits) || !f.asking.CompareAndSwap(false, true) {
		return p
	}
	defer f.asking.Store(false)
	lease, err := f.Permits.TryLock(ctx, FleetName)
	switch {
	case err == nil:
		f.Journal.RedisDid("permit")
		return f.keep(lease)
	case isUnanswered(ctx, err) && !errors.Is(err, lifecycle.ErrLeaseLost):
		f.pass(err)
		return new(permit)
	}
	return nil
}

// take waits for a permit. It returns nil when the context has ended.
func (f *Fleet) take(ctx context.Context, callers func() int) *permit {
	if p := f.try(); p != nil {
		return p
	}
	f.Journal.FleetLoads.Waits("fleet_loads", f.Permits.Permits)
	defer f.Journal.FleetLoads.Waited()
	f.waiting.Add(1)
	defer f.adjust()
	defer f.waiting.Add(-1)
	for {
		f.adjust()
		if !f.local.Acquire(ctx, callers) {
			return nil
		}
		if p := f.pop(); p != nil {
			return p
		}
	}
}

// adjust makes the instance ask for as many permits as its loads want. When none waits any more, its requests end.
func (f *Fleet) adjust() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting.Load() == 0 {
		f.crowd.end()
		f.crowd = newCrowd(f.ctx)
		f.tidyLocked()
	}
	for c := f.crowd; c.asks < f.wantedLocked(c) && f.ctx.Err() == nil; c.asks++ {
		ask := f.Permits.TryLock
		if c.scarce {
			ask = f.Permits.Lock
		}
		if !f.Background(func() { f.request(c, ask) }) { // stop: the crowd's end, or f.stop
			return
		}
	}
}

// wantedLocked returns how many permits the instance should ask for. One in the queue of the fleet for each load would
// cost Redis a heartbeat each, and the first requests would give one instance all permits at once.
func (f *Fleet) wantedLocked(c *crowd) int {
	wanted := int(f.waiting.Load())
	if c.scarce {
		wanted = (wanted + MaxHandOns - 1) / MaxHandOns
	}
	return min(wanted, f.Permits.Permits-int(f.kept.Load()))
}

// request gets a permit of the fleet: first one to spare or, where there was none, in the queue.
func (f *Fleet) request(c *crowd, ask func(context.Context, string) (*locker.Lease, error)) {
	lease, err := ask(c.ctx, FleetName)
	if errors.Is(err, lifecycle.ErrNotAcquired) && !f.isEnough(c) {
		lease, err = f.Permits.Lock(c.ctx, FleetName)
	}
	for late := 0; late < mostLate && errors.Is(err, lifecycle.ErrLeaseLost) && c.ctx.Err() == nil; late++ {
		lease, err = f.Permits.Lock(c.ctx, FleetName)
	}
	switch {
	case err == nil:
		f.Journal.RedisDid("permit")
		f.put(f.keep(lease))
	case isUnanswered(c.ctx, err):
		f.pass(err)
	}
	f.mu.Lock()
	c.asks--
	f.mu.Unlock()
	f.adjust()
}

// isEnough reports whether a request that found nothing to spare is not to queue, as enough others do.
func (f *Fleet) isEnough(c *crowd) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.scarce = true
	return c.asks > f.wantedLocked(c)
}

// isUnanswered reports whether a request for a permit failed because Redis did.
func isUnanswered(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, lifecycle.ErrNotAcquired) && !errors.Is(err, lifecycle.ErrLockClosed)
}

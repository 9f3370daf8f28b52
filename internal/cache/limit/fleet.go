package limit

import (
	"context"
	"errors"
	"sync"
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

	// mostLate is how often a request is sent again whose permit was over when it came.
	mostLate = 3

	// keepIdle is how long an instance keeps a permit that it has no load for.
	keepIdle = 5 * time.Millisecond

	// keepSlow is that while Redis is so slow that asking for one takes longer than a load.
	keepSlow = time.Second
)

// Fleet hands the permits of FleetLoads to the loads of this instance. A permit is a lease on the fleet's lifecycle.
// Loads that find none at hand wait in the instance. While the fleet has free permits, the instance asks for one for
// each of them; otherwise it queues for one for every MaxHandOns. A load that ends passes its permit to a waiting one:
// in turn to the oldest, and to that with the most callers (package slots). So a busy instance asks the semaphore once
// for several loads, and an instance where nothing waits has no permits.
//
// A load asks for its permit when it has its slot and the lease of its key. So others that want the same key wait for
// the one with the lease, and need no permits; and a load that waits for a slot of its instance keeps no permit from
// other instances.
//
// When Redis does not answer, loads get empty permits: MaxLoads alone limits them.
type Fleet struct {
	Config
	local *slots.Slots // rights to a permit at hand

	ctx  context.Context //nolint:containedctx // of those who ask; ended by Close
	stop context.CancelFunc

	mu      sync.Mutex
	hand    []*permit // those at hand: at least as many as there are rights
	kept    int       // permits that the instance has, at hand or in use
	asks    map[*context.CancelFunc]struct{}
	waiting int       // loads that wait
	scarce  bool      // the fleet had none to spare, and some loads have waited ever since
	asking  bool      // a load asks whether there is one to spare
	tidying bool      // what nobody uses is about to be given back
	open    time.Time // until then loads need no permits
}

// permit is one of the fleet's, or stands in for one while Redis does not answer.
type permit struct {
	lease   *locker.Lease // nil: it stands in for one
	uses    int           // loads that have used it
	gone    bool          // it counts no more; guarded by the mutex of Fleet
	unwatch func() bool   // ends the wait for its loss
}

// newFleet returns nil if FleetLoads is off.
func newFleet(cfg Config) *Fleet {
	if cfg.Permits == nil {
		return nil
	}
	f := &Fleet{Config: cfg, local: slots.New(0), asks: make(map[*context.CancelFunc]struct{})}
	f.ctx, f.stop = context.WithCancel(context.Background())
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
	if p := f.try(); p != nil || !f.mayAsk() {
		return p
	}
	lease, err := f.Permits.TryLock(ctx, FleetName)
	f.mu.Lock()
	f.asking = false
	f.mu.Unlock()
	switch {
	case err == nil:
		return f.keep(lease)
	case ctx.Err() == nil && !errors.Is(err, lifecycle.ErrNotAcquired) && !errors.Is(err, lifecycle.ErrLeaseLost) && !errors.Is(err, lifecycle.ErrLockClosed):
		return f.pass(err)
	}
	return nil
}

func (f *Fleet) mayAsk() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	may := !f.asking && f.waiting == 0 && f.kept < f.FleetLoads
	f.asking = f.asking || may
	return may
}

// take waits for a permit. It returns nil when the context has ended.
func (f *Fleet) take(ctx context.Context, callers func() int) *permit {
	if p := f.try(); p != nil {
		return p
	}
	f.Journal.FleetLoads.Waits("fleet_loads", f.FleetLoads)
	defer f.Journal.FleetLoads.Waited()
	f.change(1)
	defer f.change(-1)
	for f.local.Acquire(ctx, callers) {
		if p := f.pop(); p != nil {
			return p
		}
		f.askForMore()
	}
	return nil
}

// change counts a load that waits, or waits no more. When none does, nobody asks.
func (f *Fleet) change(by int) {
	f.mu.Lock()
	f.waiting += by
	none := f.waiting == 0
	if none {
		f.scarce = false
		for cancel := range f.asks {
			(*cancel)()
		}
	}
	f.mu.Unlock()
	if none {
		f.tidyLater() // a load that has left may have been given a permit
		return
	}
	f.askForMore()
}

// askForMore makes the instance ask for as many permits as its loads want.
func (f *Fleet) askForMore() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.asks) < f.wantedLocked() {
		ctx, cancel := context.WithCancel(f.ctx)
		f.asks[&cancel] = struct{}{}
		if !f.Background(func() { f.request(ctx, &cancel) }) { // stop: cancel, or f.stop
			delete(f.asks, &cancel)
			cancel()
			return
		}
	}
}

// wantedLocked returns how many permits the instance should ask for. One in the queue of the fleet for each load would
// cost Redis a heartbeat each, and the first requests would give one instance all permits at once.
func (f *Fleet) wantedLocked() int {
	wanted := f.waiting
	if f.scarce {
		wanted = (wanted + MaxHandOns - 1) / MaxHandOns
	}
	return min(wanted, f.FleetLoads-f.kept)
}

// request waits for a permit of the fleet. It first sees whether there is one to spare.
func (f *Fleet) request(ctx context.Context, cancel *context.CancelFunc) {
	defer (*cancel)()
	var lease *locker.Lease
	err := lifecycle.ErrNotAcquired
	if !f.isScarce() {
		lease, err = f.Permits.TryLock(ctx, FleetName)
	}
	if errors.Is(err, lifecycle.ErrNotAcquired) && ctx.Err() == nil {
		if !f.mayQueue(cancel) {
			return
		}
		lease, err = f.Permits.Lock(ctx, FleetName)
	}
	for again := 0; again < mostLate && errors.Is(err, lifecycle.ErrLeaseLost) && ctx.Err() == nil; again++ {
		lease, err = f.Permits.Lock(ctx, FleetName) // it came too late, to a process that had stood still: Redis has answered
	}
	f.mu.Lock()
	delete(f.asks, cancel)
	wanted := f.waiting > 0
	f.mu.Unlock()
	switch {
	case err == nil && wanted:
		f.put(f.keep(lease))
	case err == nil:
		f.giveBack(f.keep(lease))
	case ctx.Err() == nil && !errors.Is(err, lifecycle.ErrLockClosed):
		_ = f.pass(err)
	case wanted:
		f.askForMore() // it was cancelled when nobody waited, and somebody came
	}
}

func (f *Fleet) isScarce() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scarce
}

// mayQueue reports whether a request that found nothing to spare is to queue. If not, enough others do, and it counts
// no more.
func (f *Fleet) mayQueue(cancel *context.CancelFunc) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scarce = f.waiting > 0
	if enough := len(f.asks) > f.wantedLocked(); enough {
		delete(f.asks, cancel)
		return false
	}
	return true
}

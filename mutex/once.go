package mutex

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/errs"
)

// Once runs f unless the fleet has run it within the interval, and reports whether it did. It is for jobs that the scheduler of every
// instance starts. It takes the lock of the name as TryLock does. The context given to f ends as that of Do. When f returns nil, the lock
// stays held until an interval after it was acquired, by the server's clock alone: the clocks of the instances may differ by as much as the
// interval. While the lock is held, in or after f, Once returns false and no error.
//
// The interval must be longer than the difference between the instances' clocks and shorter than the time from one run to the next:
// an hour, say, for a nightly job.
//
// A run does not count if f returns an error, panics or loses its lease, or if the process dies: the next call runs f again, after a death
// no sooner than TTL later. So f may run again after it has done part of its work. It may run again after all of its work if the process
// dies, or cannot reach Redis, between the end of f and the note of it; Once then returns true and an error, if it can. If Redis loses the
// lock (a flush, a failover, a restart without persistence), the run is forgotten. Revoke lets f run again.
//
// The interval is from a millisecond to 10 years. With WithOwner, f runs each time. The error is f's, joined with that of Unlock, or that
// of TryLock if Redis could not be reached.
func (k *Locker) Once(
	ctx context.Context, name string, interval time.Duration, f func(context.Context, *Lease) error,
) (ran bool, err error) {
	switch {
	case f == nil:
		return false, k.core().NothingToDo(name)
	case interval < time.Millisecond || interval > config.Longest:
		return false, fmt.Errorf("mutex: once %q: the interval %v is not between a millisecond and 10 years", errs.Short(name), interval)
	}
	l, err := k.TryLock(ctx, name)
	switch {
	case errors.Is(err, ErrNotAcquired):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, locker.Do(ctx, l.held, l, func(ctx context.Context, l *Lease) error {
		err := f(ctx, l)
		if err == nil {
			l.held.Claim.(*claim).least.Store(int64(max(interval, k.minHold)))
		}
		return err
	})
}

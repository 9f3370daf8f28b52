package mutex

import (
	"context"
	"errors"
	"slices"
)

// Leases are locks held together.
type Leases struct {
	each []*Lease        // in the order of their names
	ctx  context.Context //nolint:containedctx // what the leases are for
	end  func()
}

// LockMany takes all the locks, or none of them. It waits for one after another, in the order of their names, so calls
// with overlapping sets do not wait for each other in a circle. It works on a cluster as on one server, and costs a
// round trip for each name. A name may be listed twice. Errors are as for Lock.
//
// Calls that already hold a lock, and ask for more in another order, may still wait for each other until ctx ends.
func (k *Locker) LockMany(ctx context.Context, names ...string) (*Leases, error) {
	if len(names) == 0 {
		return nil, errNoNames
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	all := &Leases{}
	all.ctx, all.end = context.WithoutCancel(ctx), func() {}
	for _, name := range names {
		l, err := k.Lock(ctx, name)
		if err != nil {
			_ = all.Unlock(ctx) // the error of Lock says more
			return nil, err
		}
		all.add(l)
	}
	if cause := context.Cause(all.ctx); cause != nil { // while it waited for another
		_ = all.Unlock(ctx)
		return nil, k.core().Failed("lock", names[0], cause)
	}
	return all, nil
}

func (all *Leases) add(l *Lease) {
	ctx, cancel := l.held.Within(all.ctx)
	end := all.end
	all.each = append(all.each, l)
	all.ctx, all.end = ctx, func() {
		cancel()
		end()
	}
}

// Context ends when one of the leases is lost, with its cause, and when they are unlocked.
func (all *Leases) Context() context.Context { return all.ctx }

// Each returns the leases, in the order of their names.
func (all *Leases) Each() []*Lease { return slices.Clone(all.each) }

// Unlock unlocks all, and joins their errors.
func (all *Leases) Unlock(ctx context.Context) error {
	all.end()
	var failed []error
	for _, l := range slices.Backward(all.each) {
		failed = append(failed, l.Unlock(ctx))
	}
	return errors.Join(failed...)
}

package mutex

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/run/observe"
)

func init() {
	observe.Register((*Locker).observed)
	observe.Register((*Quorum).observed)
}

func exclusive(l *locker.Lease) (mode string, fence int64) { return "exclusive", l.Fence() }

// observed is for package admin.
func (k *Locker) observed() observe.Locker {
	seen := k.core().Observed("mutex", exclusive)
	if k == nil {
		return seen
	}
	seen.Inspect = func(ctx context.Context, name string) (observe.Lock, error) {
		i, err := k.Inspect(ctx, name)
		return observe.Lock{
			Token: i.Token, Instance: i.Instance, Holders: i.Holds, Fence: i.Fence, Left: i.Left, Waiting: i.Waiters,
		}, err
	}
	seen.Revoke = func(ctx context.Context, name string) (holders int, err error) {
		held, err := k.Revoke(ctx, name)
		if held {
			holders = 1
		}
		return holders, err
	}
	return seen
}

package semaphore

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/watch/observe"
)

func init() { observe.Register((*Locker).observed) }

// observed is for package admin.
func (k *Locker) observed() observe.Locker {
	seen := k.core().Observed("semaphore", func(*locker.Lease) (string, int64) { return "permit", 0 })
	if k == nil {
		return seen
	}
	seen.Permits, seen.Revoke = k.permits, k.Revoke
	seen.Inspect = func(ctx context.Context, name string) (observe.Lock, error) {
		i, err := k.Inspect(ctx, name)
		l := observe.Lock{Holders: len(i.Holders), Waiting: i.Waiters}
		for _, h := range i.Holders {
			l.By = append(l.By, observe.Lock{Token: h.Token, Instance: keys.InstanceOf(h.Token), Left: h.Left})
		}
		return l, err
	}
	return seen
}

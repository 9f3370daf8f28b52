package rwlock

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/watch/observe"
)

func init() { observe.Register((*Locker).observed) }

// observed is for package admin.
func (k *Locker) observed() observe.Locker {
	seen := k.core().Observed("rwlock", func(l *locker.Lease) (mode string, fence int64) {
		if rw.ClaimOf(l).Writes() {
			return "write", l.Fence()
		}
		return "read", l.Fence()
	})
	if k == nil {
		return seen
	}
	seen.Revoke = k.Revoke
	seen.Inspect = func(ctx context.Context, name string) (observe.Lock, error) {
		i, err := k.Inspect(ctx, name)
		l := observe.Lock{
			Token: i.Token, Instance: i.Instance, Holders: i.Readers, Fence: i.Fence, Left: i.Left,
			Waiting: i.WaitingWriters, WaitingReaders: i.WaitingReaders,
		}
		if i.Token != "" {
			l.Holders++
		}
		return l, err
	}
	return seen
}

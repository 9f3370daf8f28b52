package mutex

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/watch/observe"
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
	seen.Revoke = k.revoke
	return seen
}

// Redis is what a Locker needs of a client: *redis.Client (also a Sentinel failover client) and *redis.ClusterClient have it. A *redis.Ring is
// refused: two could hold a lock when one process does not reach a shard. The Locker never configures or closes the client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// Hooks are called when locks are requested and released. Any of them may be nil. They must be quick, must not block and
// must not panic; they may be called concurrently.
type Hooks struct {
	// Begin is called at the beginning of every call that asks for one lock, with its context and how it asks: Lock or
	// TryLock, and RLock or TryRLock of package rwlock. It returns a function that is called at the end of that call, with its error, and that may be nil. It is for
	// tracing. Package github.com/cacheguard/go/otel uses it.
	Begin func(ctx context.Context, call, name string) func(err error)

	// OnLock is called at the end of every call that asked for one lock, with how long that took. An error says why the
	// caller does not have it.
	OnLock func(name string, took time.Duration, err error)

	// OnUnlock is called when a lease is unlocked, with how long it was held and what Unlock returns. It is called once
	// for each lease, but not for one that is never unlocked, as may happen after it was lost.
	OnUnlock func(name string, held time.Duration, err error)
}

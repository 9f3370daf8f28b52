package semaphore

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
)

// claim is one caller's way to a permit.
type claim struct {
	*Locker
	locker.Claim

	name string
}

func (k *Locker) newClaim(name string) *claim {
	return &claim{
		Locker: k, name: name,
		Claim: locker.Claim{
			Base: k.base, Calls: callsAt(protocol, keys.Tagged(k.base.Config.Prefix, name)), Token: keys.NewToken(k.base.Config.Instance), As: k.permits,
		},
	}
}

// wait waits until the claim has a permit. The context's error says why it did not get one; another error is Redis'.
func (c *claim) wait(ctx context.Context) (got queue.Grant, err error) {
	if c.Guest, err = c.doors.Enter(ctx, c.life.Ending, c.name); err != nil {
		return got, err
	}
	defer c.Guest.Leave()
	return c.Wait(ctx, inboxKey(c.Keys[0], c.Token))
}

func (c *claim) try(ctx context.Context) (queue.Grant, error) { return c.Try(ctx, ErrNotAcquired) }

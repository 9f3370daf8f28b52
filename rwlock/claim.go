package rwlock

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
)

// claim is one caller's way to a lock.
type claim struct {
	*Locker
	locker.Claim

	name string
	mode mode
}

func (k *Locker) newClaim(name string, m mode) *claim {
	return &claim{
		Locker: k, name: name, mode: m,
		Claim: locker.Claim{
			Base: k.base, Calls: lockAt(protocol, keys.Tagged(k.base.Config.Prefix, name)).Calls,
			Token: keys.NewToken(k.base.Config.Instance), As: m.arg(),
		},
	}
}

// lock makes the calls that only this kind of lock has.
func (c *claim) lock() lock { return lock{c.Calls, protocol} }

// wait waits until the claim has the lock. The context's error says why it did not get it; another one is Redis'.
func (c *claim) wait(ctx context.Context) (queue.Grant, error) {
	if err := c.enter(ctx); err != nil {
		return queue.Grant{}, err
	}
	defer c.Guest.Leave()
	got, err := c.Wait(ctx, inboxKey(c.Keys[0], c.mode, c.Token))
	if err == nil {
		c.Guest.Granted()
	}
	return got, err
}

// enter goes through the lock's door. Readers that are patient need not: each waits for one writer at most, and costs no more for
// leaving than for showing that it lives.
func (c *claim) enter(ctx context.Context) (err error) {
	leaves, given := ctx.Deadline()
	switch {
	case c.mode == writing:
		c.Guest, err = c.writers.Enter(ctx, c.life.Ending, c.name)
	case given && time.Until(leaves) < queue.Grace(c.Config.TTL)/3:
		c.Guest, err = c.readers.Enter(ctx, c.life.Ending, c.name)
	}
	return err
}

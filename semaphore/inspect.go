package semaphore

import (
	"context"
	"time"
)

// Info is what Redis knows of a semaphore.
type Info struct {
	Holders []Holder // those that have a permit, in the order in which their leases end
	Waiters int      // in the queue: the first few of each process
}

// Holder has a permit.
type Holder struct {
	Token string
	Left  time.Duration // until its lease ends, unless it is renewed
}

// Inspect looks at the semaphore of the name.
func (k *Locker) Inspect(ctx context.Context, name string) (Info, error) {
	var info Info
	err := k.regard("inspect", name, func(c *claim) error {
		reply, err := k.base.Redis.Ask(ctx, c.Inspecting(), nil)
		if err == nil {
			info, err = parseInfo(reply.Cmd)
		}
		return err
	})
	return info, err
}

// Revoke takes the permits of the name away from all holders, and returns how many there were. Their contexts end with
// ErrRevoked when they are next renewed, at most a third of TTL later; the next holders do not wait for that. Waiters keep
// their places.
func (k *Locker) Revoke(ctx context.Context, name string) (holders int, err error) {
	err = k.regard("revoke", name, func(c *claim) error {
		n, _, err := c.Run(ctx, c.Revoking(c.Token))
		holders = int(n)
		return err
	})
	return holders, err
}

func (k *Locker) regard(op, name string, f func(*claim) error) error {
	if err := k.begin(name); err != nil {
		return err
	}
	defer k.life.Done()
	return lockErrors.Failed(op, name, f(k.newClaim(name)))
}

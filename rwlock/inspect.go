package rwlock

import (
	"context"
	"time"
)

// Info is what Redis knows of a lock.
type Info struct {
	Token          string        // of the writer that holds it; empty: none does
	Instance       string        // of that writer: its Config.Instance; empty: not known
	Readers        int           // that hold it
	Fence          int64         // of the last writer; 0: none is remembered
	Left           time.Duration // until the leases of the holders end, unless they are renewed
	WaitingWriters int           // in the queue: the first few of each process
	WaitingReaders int
}

// Inspect reports who holds the lock of the name and how many wait for it. For a lock that nobody ever took, it returns the
// zero Info.
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

// Revoke takes the lock of the name away from all its holders, and returns how many there were. Their contexts end with
// ErrRevoked when they are next renewed, at most a third of TTL later, or, with FixedLease, when their leases end; the next
// holders do not wait for that. Waiters keep their places. Revoke takes a fence, so that those of the revoked holders are
// old.
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
	return lockErrors.Failed(op, name, f(k.newClaim(name, reading)))
}

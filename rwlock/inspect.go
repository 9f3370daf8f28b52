package rwlock

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/detach"
)

// Info is what Redis knows of a lock.
type Info struct {
	Token          string        // of the writer that holds it; empty: none does
	Readers        int           // that hold it
	Fence          int64         // of the last writer; 0: none is remembered
	Left           time.Duration // until the leases of the holders end, unless they are renewed
	WaitingWriters int
	WaitingReaders int
}

// Inspect looks at the lock of the name.
func (k *Locker) Inspect(ctx context.Context, name string) (Info, error) {
	return look(ctx, k, "inspect", name, func(ctx context.Context, c *claim) (Info, error) {
		call := c.look()
		return parseLooked(call.Run(ctx, k.rdb))
	})
}

// Revoke takes the lock of the name away from all its holders, and returns how many there were. Their contexts end with
// ErrRevoked when they are next renewed, at most a third of TTL later; the next holders do not wait for that. Those who
// wait keep their places. It takes a fence, so that those of the revoked are old.
func (k *Locker) Revoke(ctx context.Context, name string) (holders int, err error) {
	id := rand.Text()
	return look(ctx, k, "revoke", name, func(ctx context.Context, c *claim) (int, error) {
		call := c.revokeAll(id)
		return call.Run(ctx, k.rdb).Int()
	})
}

func look[T any](
	ctx context.Context, k *Locker, op, name string, f func(context.Context, *claim) (T, error),
) (value T, err error) {
	if err := k.begin(name); err != nil {
		return value, err
	}
	defer k.life.Done()
	value, err = detach.Do(ctx, &k.life.Tasks, k.cfg.RedisTimeout, func(ctx context.Context) (T, error) {
		return f(ctx, k.newClaim(name, reading))
	}, nil)
	if err != nil {
		return value, fmt.Errorf("rwlock: %s %q: %w", op, name, err)
	}
	return value, nil
}

package mutex

import (
	"context"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/detach"
)

// Info is what Redis knows of a lock.
type Info struct {
	Token   string        // of the holder; empty: the lock is free
	Fence   int64         // of the last acquisition; 0: none is remembered
	Left    time.Duration // until the holder's lease ends, unless it is renewed
	Holds   int           // how often its owner has it; 1 without an owner
	Waiters int           // in the queue: processes, or callers if they are Fair or have an owner
}

// Inspect looks at the lock of the name.
func (k *Locker) Inspect(ctx context.Context, name string) (Info, error) {
	return look(ctx, k, "inspect", name, func(ctx context.Context, key string) (Info, error) {
		return inspect(ctx, k.rdb, key)
	})
}

// Revoke takes the lock of the name away from its holder, and reports whether there was one. The holder's context ends with
// ErrRevoked: as soon as the message reaches it, or else with its next renewal. The next holder does not wait for that.
func (k *Locker) Revoke(ctx context.Context, name string) (bool, error) {
	return look(ctx, k, "revoke", name, func(ctx context.Context, key string) (bool, error) {
		return revoke(ctx, k.rdb, key, k.cfg.Prefix)
	})
}

func look[T any](ctx context.Context, k *Locker, op, name string, f func(context.Context, string) (T, error)) (T, error) {
	var none T
	if err := k.begin(name); err != nil {
		return none, err
	}
	defer k.life.Done()
	value, err := detach.Do(ctx, &k.life.Tasks, k.cfg.RedisTimeout, func(ctx context.Context) (T, error) {
		return f(ctx, lockKey(k.cfg.Prefix, name))
	}, nil)
	if err != nil {
		return none, fmt.Errorf("mutex: %s %q: %w", op, name, err)
	}
	return value, nil
}

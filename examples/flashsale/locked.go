package main

import (
	"context"
	"errors"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/mutex"
)

// locked sells one at a time, whichever instance it is.
type locked struct {
	shelf
	locks *mutex.Locker
}

func openMutex(o opening) (seller, error) { return openLocked(o, false) }

// openFairMutex serves all who wait in the order in which they asked. Otherwise an instance may serve a few of its own
// before it is another one's turn.
func openFairMutex(o opening) (seller, error) { return openLocked(o, true) }

func openLocked(o opening, fair bool) (seller, error) {
	locks, err := mutex.New(o.rdb, mutex.Config{Prefix: o.prefix + ":lock", Fair: fair, TTL: o.lease, RedisTimeout: backends.Patience})
	if err != nil {
		return nil, err
	}
	return locked{newShelf(o), locks}, nil
}

func (s locked) Sell(ctx context.Context, user int) error {
	return s.locks.Do(ctx, "stock", func(ctx context.Context, _ *mutex.Lease) error { return s.sell(ctx, user) })
}

func (s locked) Close() error { return errors.Join(s.locks.Close(), s.shelf.Close()) }

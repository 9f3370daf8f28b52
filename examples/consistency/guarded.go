package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/rwlock"
)

// invalidating reads through a Guard, and invalidates after a write: nobody stores what it had read before. Only a writer
// that dies between the two leaves the old price behind, for the TTL.
type invalidating struct {
	*cacheguard.Guard
	db *prices
}

func openInvalidating(rdb *redis.Client, db *prices, prefix string) (shop, error) {
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: prefix, TTL: ttl, RedisTimeout: backends.Patience})
	return invalidating{guard, db}, err
}

func (s invalidating) Price(ctx context.Context, id int) (int64, error) {
	return cacheguard.Get(ctx, s.Guard, priceKey(id), func(ctx context.Context) (int64, error) { return s.db.read(ctx, id) })
}

func (s invalidating) Raise(ctx context.Context, id int) (int64, error) {
	cents, err := s.db.raise(ctx, id)
	return cents, errors.Join(err, s.Invalidate(ctx, priceKey(id)))
}

// updating writes within an Update, which keeps loads from storing the old price once the write has begun. It does so
// even if the writer dies, wherever it is.
type updating struct{ invalidating }

func openUpdating(rdb *redis.Client, db *prices, prefix string) (shop, error) {
	s, err := openInvalidating(rdb, db, prefix)
	if err != nil {
		return nil, err
	}
	return updating{s.(invalidating)}, nil
}

func (s updating) Raise(ctx context.Context, id int) (cents int64, err error) {
	err = s.Update(ctx, priceKey(id), func(ctx context.Context) (err error) {
		cents, err = s.db.raise(ctx, id)
		return err
	})
	return cents, err
}

// readLocking is the classical pattern: readers take the read lock, writers the write lock, which is what Update takes. One
// price needs no more than an Update. Code that reads several prices that belong together, or acts on what it read, holds off
// writers in this way.
type readLocking struct {
	updating
	locks *rwlock.Locker
}

func openReadLocking(rdb *redis.Client, db *prices, prefix string) (shop, error) {
	s, err := openUpdating(rdb, db, prefix)
	if err != nil {
		return nil, err
	}
	// The Guard's Prefix: the Guard's locks.
	locks, err := rwlock.New(rdb, rwlock.Config{Prefix: prefix, RedisTimeout: backends.Patience})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return readLocking{s.(updating), locks}, nil
}

func (s readLocking) Price(ctx context.Context, id int) (cents int64, err error) {
	err = s.locks.RDo(ctx, priceKey(id), func(ctx context.Context, _ *rwlock.Lease) (err error) {
		cents, err = s.updating.Price(ctx, id)
		return err
	})
	return cents, err
}

func (s readLocking) Close() error { return errors.Join(s.locks.Close(), s.updating.Close()) }

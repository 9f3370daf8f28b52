package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/program"
)

// deleteAfterWrite is the cache that is usually written by hand: ask Redis, on a miss ask the database and store what it
// said; and after a write, delete.
//
// A reader that has asked the database before a write may store what it got after the delete. Then the old price stays
// for the TTL, or until the next write.
type deleteAfterWrite struct {
	rdb    *redis.Client
	db     *prices
	prefix string
}

func openDeleteAfterWrite(rdb *redis.Client, db *prices, prefix string) (shop, error) {
	return deleteAfterWrite{rdb, db, prefix}, nil
}

func (s deleteAfterWrite) Price(ctx context.Context, id int) (int64, error) {
	cents, err := s.rdb.Get(ctx, s.key(id)).Int64()
	if !errors.Is(err, redis.Nil) {
		return cents, err
	}
	if cents, err = s.db.read(ctx, id); err != nil {
		return 0, err
	}
	return cents, s.rdb.Set(ctx, s.key(id), cents, ttl).Err()
}

func (s deleteAfterWrite) Raise(ctx context.Context, id int) (int64, error) {
	cents, err := s.db.raise(ctx, id)
	return cents, errors.Join(err, s.rdb.Del(ctx, s.key(id)).Err())
}

func (s deleteAfterWrite) Close() error { return nil }

func (s deleteAfterWrite) key(id int) string { return s.prefix + ":" + priceKey(id) }

// delayedDoubleDelete deletes before the write, and once more some time after it, for those readers who stored what they had
// read before. Until then they have spread the old price; and a reader slower than the delay leaves it behind as before.
type delayedDoubleDelete struct {
	deleteAfterWrite
	delay time.Duration
	tasks *sync.WaitGroup // the second deletes
	stop  context.CancelFunc
	open  context.Context //nolint:containedctx // ends with the shop, not with a call
}

func openDelayedDoubleDelete(rdb *redis.Client, db *prices, prefix string) (shop, error) {
	open, stop := context.WithCancel(context.Background())
	return delayedDoubleDelete{deleteAfterWrite{rdb, db, prefix}, secondDelete, new(sync.WaitGroup), stop, open}, nil
}

func (s delayedDoubleDelete) Raise(ctx context.Context, id int) (int64, error) {
	if err := s.rdb.Del(ctx, s.key(id)).Err(); err != nil {
		return 0, err
	}
	cents, err := s.db.raise(ctx, id)
	s.tasks.Go(func() { // owner: s; stop: s.open; joined by Close
		if program.Pause(s.open, s.delay) {
			_ = s.rdb.Del(s.open, s.key(id)).Err() // nobody is left to be told
		}
	})
	return cents, err
}

func (s delayedDoubleDelete) Close() error {
	s.stop()
	s.tasks.Wait()
	return nil
}

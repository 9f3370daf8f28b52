package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends"
)

// byHandShop has the cache that is usually written: ask Redis, on a miss ask the database and store what it said. When
// the entry expires, everybody who asks misses it, and everybody goes to the database.
type byHandShop struct {
	rdb    *redis.Client
	db     *backends.ProductDB
	prefix string
	ttl    time.Duration
}

func openByHand(rdb *redis.Client, db *backends.ProductDB, prefix string, ttl time.Duration) (shop, error) {
	return byHandShop{rdb, db, prefix, ttl}, nil
}

func (s byHandShop) Product(ctx context.Context, id int) (p backends.Product, err error) {
	key := entryKey(s.prefix, id)
	cached, err := s.rdb.Get(ctx, key).Bytes()
	if err == nil {
		return p, json.Unmarshal(cached, &p)
	}
	if !errors.Is(err, redis.Nil) {
		return p, err
	}
	if p, err = s.db.Product(ctx, id); err != nil {
		return p, err
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return p, err
	}
	return p, s.rdb.Set(ctx, key, encoded, s.ttl).Err()
}

func (byHandShop) Close() error { return nil }

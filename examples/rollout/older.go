package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// older is the cache that the service has had: GET and SET by hand, JSON under keys of its own. A reader may store what it read before a write, after
// the write has deleted the key: then it serves an old value until its TTL ends.
type older struct {
	redis  *redis.Client
	prefix string
	shop   *shop
}

type olderEntry struct {
	Price int64 `json:"price"`
}

const olderTTL = 500 * time.Millisecond

func (o older) key(product int) string { return o.prefix + ":price:" + strconv.Itoa(product) }

func (o older) price(ctx context.Context, product int) (int64, error) {
	var e olderEntry
	raw, err := o.redis.Get(ctx, o.key(product)).Bytes()
	switch {
	case err == nil:
		err = json.Unmarshal(raw, &e)
		return e.Price, err
	case !errors.Is(err, redis.Nil):
		return 0, err
	}
	if e.Price, err = o.shop.price(ctx, product); err != nil {
		return 0, err
	}
	if raw, err = json.Marshal(e); err != nil {
		return 0, err
	}
	return e.Price, o.redis.Set(ctx, o.key(product), raw, olderTTL).Err()
}

func (o older) forget(ctx context.Context, product int) error {
	return o.redis.Del(ctx, o.key(product)).Err()
}

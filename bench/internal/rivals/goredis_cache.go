package rivals

import (
	"context"

	rediscache "github.com/go-redis/cache/v9"
	"github.com/redis/go-redis/v9"
)

// goRedisCache is go-redis/cache v9.0.0 with Once, as its README has it against stampedes ("only one Do at a time"), without
// its optional TinyLFU, which no invalidation of another instance would reach. It serves nothing stale.
var goRedisCache = CacheLibrary{
	Name: "go-redis/cache 9.0.0", Kind: Shared, Promise: OnePerProcess,
	Open: func(s Setup) (Cache, error) {
		rdb := s.client()
		return onceCache{rdb, rediscache.New(&rediscache.Options{Redis: rdb}), s}, nil
	},
}

type onceCache struct {
	*redis.Client
	cache *rediscache.Cache
	setup Setup
}

func (c onceCache) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	var got []byte
	err := c.cache.Once(&rediscache.Item{
		Ctx: ctx, Key: key, Value: &got, TTL: c.setup.jittered(),
		Do: func(*rediscache.Item) (any, error) { return load(ctx) },
	})
	return got, err
}

func (c onceCache) Invalidate(ctx context.Context, key string) error { return c.cache.Delete(ctx, key) }

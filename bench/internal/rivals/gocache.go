package rivals

import (
	"context"
	"errors"

	"github.com/eko/gocache/lib/v4/cache"
	"github.com/eko/gocache/lib/v4/store"
	redisstore "github.com/eko/gocache/store/redis/v4"
	"github.com/redis/go-redis/v9"
)

// gocache is eko/gocache 4.2.0 with its loadable cache before its Redis store, as its README has it. A loadable has one
// function for all keys. It stores in the background, and serves nothing stale.
var gocache = CacheLibrary{
	Name: "eko/gocache 4.2.0", Kind: Shared, Promise: OnePerProcess,
	Open: func(s Setup) (Cache, error) {
		rdb := s.client()
		load := func(ctx context.Context, _ any) (string, []store.Option, error) {
			v, err := loadWith(ctx)
			return string(v), []store.Option{store.WithExpiration(s.jittered())}, err
		}
		return loadable{rdb, cache.NewLoadable(load, cache.New[string](redisstore.NewRedis(rdb)))}, nil
	},
}

type loadable struct {
	rdb   *redis.Client
	cache *cache.LoadableCache[string]
}

func (c loadable) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	got, err := c.cache.Get(load.with(ctx), key)
	return bytesOf(got), err
}

func (c loadable) Invalidate(ctx context.Context, key string) error { return c.cache.Delete(ctx, key) }

func (c loadable) Close() error { return errors.Join(c.cache.Close(), c.rdb.Close()) }

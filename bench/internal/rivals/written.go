package rivals

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// Written are what hot keys are written with. Whoever loads at a write does so by Setup.Load.
var Written = []CacheLibrary{
	cacheguardPut, cacheguardShared, byHand, rocks,
	cacheguardTieredPut, cacheguardTiered, aside, goRedisRefresh,
}

// Putter is a Cache whose writers know the new value. What was written is stored by the end of the write.
type Putter interface {
	Put(ctx context.Context, key string, write Loader) error
}

// cacheguardPut is cacheguard with writers that Put.
var cacheguardPut = CacheLibrary{
	Name: "cacheguard, Put", Ours: true, Kind: Shared, Promise: OnePerFleet, Inboxes: true,
	Open: func(s Setup) (Cache, error) { return openPutting(s, cacheguard.LocalConfig{}) },
}

var cacheguardTieredPut = CacheLibrary{
	Name: "cacheguard, local tier, Put", Ours: true, Kind: Tiered, Promise: OnePerFleet, Inboxes: true,
	Open: func(s Setup) (Cache, error) { return openPutting(s, s.local()) },
}

type putting struct {
	guarded
	named *cacheguard.Cache[string, []byte]
}

func openPutting(s Setup, local cacheguard.LocalConfig) (Cache, error) {
	opened, err := openGuard(s, local)
	if err != nil {
		return nil, err
	}
	g := opened.(guarded) //nolint:forcetypeassert // it opens nothing else
	named, err := cacheguard.NewCache(g.Guard, cacheguard.CacheConfig[string, []byte]{Name: "written", Load: s.Load})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return putting{g, named}, nil
}

func (c putting) Get(ctx context.Context, key string, _ Loader) ([]byte, error) {
	return c.named.Get(ctx, key)
}

func (c putting) Put(ctx context.Context, key string, write Loader) error {
	return c.named.Put(ctx, key, write)
}

// goRedisRefresh is go-redis 9.23.0 with its client-side cache, which reads anew what is invalidated. That helps only if a new value is there: a
// writer loads it and SETs it, and of two at once the older one may be the last. Missing keys are loaded by hand. It is experimental there.
var goRedisRefresh = CacheLibrary{
	Name: "go-redis 9.23.0 client-side cache, refresh", Kind: Tiered, Promise: NoPromise,
	Open: func(s Setup) (Cache, error) {
		o := *s.Redis
		o.PoolSize, o.Protocol = poolSize, 3
		o.ClientSideCacheConfig, o.ClientSideCacheRefreshOnInvalidate = &redis.ClientSideCacheConfig{}, true
		return refreshed{hand{redis.NewClient(&o), s}}, nil
	},
}

type refreshed struct{ hand }

func (c refreshed) Invalidate(ctx context.Context, key string) error {
	value, err := c.setup.Load(ctx, key)
	if err != nil {
		return err
	}
	return c.Set(ctx, key, value, c.setup.jittered()).Err()
}

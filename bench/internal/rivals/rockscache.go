package rivals

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/dtm-labs/rockscache"
	"github.com/eko/gocache/lib/v4/cache"
	"github.com/eko/gocache/lib/v4/store"
	redisstore "github.com/eko/gocache/store/redis/v4"
	rediscache "github.com/go-redis/cache/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidisaside"
	"github.com/viccon/sturdyc"
)

// rocks is rockscache 0.1.1 with NewDefaultOptions, as its README has it: after TagAsDeleted it serves the old value once
// more while it loads (weak consistency), but nothing after the TTL. It takes its Delay off the TTL, which is
// added here, and out of the jitter, which it takes as a share of both. It knows whole seconds.
var rocks = CacheLibrary{
	Name: "rockscache 0.1.1", Kind: Shared, Promise: OnePerFleet,
	Open: func(s Setup) (Cache, error) {
		rdb, o := s.universal(), rockscache.NewDefaultOptions()
		o.RandomExpireAdjustment = s.Jitter * float64(s.TTL) / float64(s.TTL+o.Delay)
		if s.Lease != 0 {
			o.LockExpire = s.Lease
		}
		return rock{rdb, rockscache.NewClient(rdb, o), s}, nil
	},
}

type rock struct {
	redis.UniversalClient
	cache *rockscache.Client
	setup Setup
}

func (c rock) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	got, err := c.cache.Fetch2(ctx, key, c.setup.TTL+c.cache.Options.Delay, func() (string, error) {
		v, err := load(ctx)
		return string(v), err
	})
	return bytesOf(got), err
}

func (c rock) Invalidate(ctx context.Context, key string) error {
	return c.cache.TagAsDeleted2(ctx, key)
}

// gocache is eko/gocache 4.2.0 with its loadable cache before its Redis store, as its README has it. A loadable has one
// function for all keys. It stores in the background, and serves nothing stale.
var gocache = CacheLibrary{
	Name: "eko/gocache 4.2.0", Kind: Shared, Promise: OnePerProcess,
	Open: func(s Setup) (Cache, error) {
		rdb := s.universal()
		load := func(ctx context.Context, _ any) (string, []store.Option, error) {
			v, err := loadWith(ctx)
			return string(v), []store.Option{store.WithExpiration(s.jittered())}, err
		}
		return loadable{rdb, cache.NewLoadable(load, cache.New[string](redisstore.NewRedis(rdb)))}, nil
	},
}

type loadable struct {
	rdb   io.Closer
	cache *cache.LoadableCache[string]
}

func (c loadable) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	got, err := c.cache.Get(load.with(ctx), key)
	return bytesOf(got), err
}

func (c loadable) Invalidate(ctx context.Context, key string) error { return c.cache.Delete(ctx, key) }

func (c loadable) Close() error { return errors.Join(c.cache.Close(), c.rdb.Close()) }

// goRedisCache is go-redis/cache v9.0.0 with Once, as its README has it against stampedes ("only one Do at a time"), without
// its optional TinyLFU, which no invalidation of another instance would reach. It serves nothing stale.
var goRedisCache = CacheLibrary{
	Name: "go-redis/cache 9.0.0", Kind: Shared, Promise: OnePerProcess,
	Open: func(s Setup) (Cache, error) {
		rdb := s.universal()
		return onceCache{rdb, rediscache.New(&rediscache.Options{Redis: rdb}), s}, nil
	},
}

type onceCache struct {
	redis.UniversalClient
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

// aside is rueidisaside 1.0.77 as its README has it. It brings its own client, and always keeps values in memory with
// client-side caching. It serves nothing stale.
var aside = CacheLibrary{
	Name: "rueidisaside 1.0.77", Kind: Tiered, Promise: OnePerFleet,
	Open: func(s Setup) (Cache, error) {
		c, err := rueidisaside.NewClient(rueidisaside.ClientOption{ClientOption: s.rueidis(), ClientTTL: s.Lease})
		return asideCache{c, s}, err
	},
}

type asideCache struct {
	rueidisaside.CacheAsideClient
	setup Setup
}

func (c asideCache) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	got, err := c.CacheAsideClient.Get(ctx, c.setup.jittered(), key, func(ctx context.Context, _ string) (string, error) {
		v, err := load(ctx)
		return string(v), err
	})
	return bytesOf(got), err
}

func (c asideCache) Invalidate(ctx context.Context, key string) error { return c.Del(ctx, key) }

func (c asideCache) Close() error {
	c.CacheAsideClient.Close()
	return nil
}

// rueidis is what a client of rueidis is made with.
func (s Setup) rueidis() rueidis.ClientOption {
	o := rueidis.ClientOption{
		InitAddress: []string{s.Redis.Addr}, Username: s.Redis.Username, Password: s.Redis.Password,
		SelectDB: s.Redis.DB, TLSConfig: s.Redis.TLSConfig,
	}
	if s.Cluster != nil {
		o.InitAddress = s.Cluster
	}
	if s.Dial != nil {
		o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return s.Dial(ctx, "tcp", addr)
		}
	}
	return o
}

// sturdy is sturdyc 1.1.5 with the shards and the eviction of its README. Where stale values are wanted it refreshes early,
// as its README advises: asynchronously after the TTL, synchronously after StaleFor. Its distributed storage writes to
// Redis if the user implements that; here is the local part. Its goroutine that evicts is off, since nothing ends it: it would
// keep what every round has cached.
var sturdy = CacheLibrary{
	Name: "sturdyc 1.1.5", Kind: Local, Promise: OnePerProcess,
	Open: func(s Setup) (Cache, error) {
		ttl, options := s.TTL, []sturdyc.Option{sturdyc.WithNoContinuousEvictions()}
		if s.StaleFor > 0 {
			ttl += s.StaleFor
			soonest := s.TTL - time.Duration(s.Jitter*float64(s.TTL))
			options = append(options, sturdyc.WithEarlyRefreshes(soonest, s.TTL+time.Millisecond, ttl, time.Second))
		}
		return sturdyCache{sturdyc.New[[]byte](max(2*s.Entries, 10_000), 10, ttl, 10, options...)}, nil
	},
}

type sturdyCache struct{ *sturdyc.Client[[]byte] }

func (c sturdyCache) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	return c.GetOrFetch(ctx, key, sturdyc.FetchFn[[]byte](load))
}

func (c sturdyCache) Invalidate(_ context.Context, key string) error {
	c.Delete(key)
	return nil
}

func (c sturdyCache) Close() error { return nil } // it offers none

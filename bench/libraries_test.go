package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/dtm-labs/rockscache"
	rediscache "github.com/go-redis/cache/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidisaside"

	"github.com/cacheguard/go/cacheguard"
)

// libraries are set up as their READMEs do it, without local tiers where these are optional.
var libraries = []library{
	{name: "cacheguard", open: openGuard, inboxes: instances - 1},
	{name: "by hand", open: openByHand},
	{name: "go-redis/cache v9.0.0", open: openRedisCache},
	{name: "rockscache 0.1.1", open: openRocks},
	{name: "rueidisaside 1.0.77", open: openAside},
}

// localTier is cacheguard with values in this process, all of which fit.
var localTier = library{name: "cacheguard, local tier", open: func(b *testing.B) cache {
	g := newGuard(b, client(b), cacheguard.Config{
		Local: cacheguard.LocalConfig{MaxBytes: 64 << 20, TTL: ttl},
	})
	if err := g.SelfCheck(b.Context()); err != nil { // and the tier is in use
		b.Fatal(err)
	}
	return g
}}

type guarded struct{ *cacheguard.Guard }

func openGuard(b *testing.B) cache { return newGuard(b, client(b), cacheguard.Config{}) }

func newGuard(b *testing.B, rdb cacheguard.Redis, cfg cacheguard.Config) guarded {
	b.Helper()
	cfg.Prefix = "bench"
	if cfg.TTL == 0 {
		cfg.TTL = ttl
	}
	g, err := cacheguard.New(rdb, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Close() })
	return guarded{g}
}

func (c guarded) get(ctx context.Context, key string, want []byte, load loader) error {
	got, err := cacheguard.Get(ctx, c.Guard, key, func(context.Context) ([]byte, error) { return load() })
	return check(key, got, want, err)
}

type byHand struct{ redis.Cmdable }

func openByHand(b *testing.B) cache { return byHand{client(b)} }

func (c byHand) get(ctx context.Context, key string, want []byte, load loader) error {
	got, err := c.Get(ctx, key).Bytes()
	if errors.Is(err, redis.Nil) {
		if got, err = load(); err == nil {
			err = c.Set(ctx, key, got, ttl).Err()
		}
	}
	return check(key, got, want, err)
}

type redisCache struct{ *rediscache.Cache }

func openRedisCache(b *testing.B) cache {
	return redisCache{rediscache.New(&rediscache.Options{Redis: client(b)})}
}

func (c redisCache) get(ctx context.Context, key string, want []byte, load loader) error {
	var got []byte
	err := c.Once(&rediscache.Item{
		Ctx: ctx, Key: key, Value: &got, TTL: ttl,
		Do: func(*rediscache.Item) (any, error) { return load() },
	})
	return check(key, got, want, err)
}

type rocks struct{ *rockscache.Client }

func openRocks(b *testing.B) cache {
	return rocks{rockscache.NewClient(client(b), rockscache.NewDefaultOptions())}
}

func (c rocks) get(ctx context.Context, key string, want []byte, load loader) error {
	got, err := c.Fetch2(ctx, key, ttl, func() (string, error) {
		v, err := load()
		return string(v), err
	})
	return checkString(key, got, want, err)
}

type aside struct{ rueidisaside.CacheAsideClient }

func openAside(b *testing.B) cache {
	c, err := rueidisaside.NewClient(rueidisaside.ClientOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{shared.Addr()}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return aside{c}
}

func (c aside) get(ctx context.Context, key string, want []byte, load loader) error {
	got, err := c.Get(ctx, ttl, key, func(context.Context, string) (string, error) {
		v, err := load()
		return string(v), err
	})
	return checkString(key, got, want, err)
}

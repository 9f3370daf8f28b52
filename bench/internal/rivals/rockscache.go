package rivals

import (
	"context"

	"github.com/dtm-labs/rockscache"
	"github.com/redis/go-redis/v9"
)

// rocks is rockscache 0.1.1 with NewDefaultOptions, as its README has it: after TagAsDeleted it serves the old value once
// more while it loads (weak consistency), but nothing after the TTL. It takes its Delay off the TTL, which is
// added here, and out of the jitter, which it takes as a share of both. It knows whole seconds.
var rocks = CacheLibrary{
	Name: "rockscache 0.1.1", Kind: Shared, Promise: OnePerFleet,
	Open: func(s Setup) (Cache, error) {
		rdb, o := s.client(), rockscache.NewDefaultOptions()
		o.RandomExpireAdjustment = s.Jitter * float64(s.TTL) / float64(s.TTL+o.Delay)
		if s.Lease != 0 {
			o.LockExpire = s.Lease
		}
		return rock{rdb, rockscache.NewClient(rdb, o), s}, nil
	},
}

type rock struct {
	*redis.Client
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

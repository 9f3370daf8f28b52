package rivals

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"
)

// otterLoader is otter 2.4.0 with the loader of its README, and with RefreshWriting where stale values are wanted.
var otterLoader = CacheLibrary{
	Name: "otter 2.4.0", Kind: Local, Promise: OnePerProcess,
	Open: func(s Setup) (Cache, error) {
		o := &otter.Options[string, []byte]{
			MaximumSize: max(2*s.Entries, 10_000),
			ExpiryCalculator: otter.ExpiryWritingFunc(func(otter.Entry[string, []byte]) time.Duration {
				return s.jittered() + s.StaleFor
			}),
		}
		if s.StaleFor > 0 {
			o.RefreshCalculator = otter.RefreshWriting[string, []byte](s.TTL)
		}
		c, err := otter.New(o)
		return otterCache{c}, err
	},
}

type otterCache struct{ *otter.Cache[string, []byte] }

func (c otterCache) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	return c.Cache.Get(ctx, key, otter.LoaderFunc[string, []byte](func(ctx context.Context, _ string) ([]byte, error) {
		return load(ctx)
	}))
}

func (c otterCache) Invalidate(_ context.Context, key string) error {
	c.Cache.Invalidate(key)
	return nil
}

func (c otterCache) Close() error {
	c.StopAllGoroutines()
	return nil
}

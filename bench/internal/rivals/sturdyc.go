package rivals

import (
	"context"
	"time"

	"github.com/viccon/sturdyc"
)

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

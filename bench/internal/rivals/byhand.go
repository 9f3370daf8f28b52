package rivals

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// byHand is what one writes without a library: GET, load, SET, and DEL after a write. What Redis fails to answer is loaded,
// and what it fails to store will be loaded again. It serves nothing stale.
var byHand = CacheLibrary{
	Name: "GET + SET by hand", Kind: Shared, Promise: NoPromise,
	Open: func(s Setup) (Cache, error) { return hand{s.client(), s}, nil },
}

type hand struct {
	*redis.Client
	setup Setup
}

func (c hand) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	got, err := c.Client.Get(ctx, key).Bytes()
	if err != nil {
		if got, err = load(ctx); err == nil {
			_ = c.Set(ctx, key, got, c.setup.jittered()).Err() // see above
		}
	}
	return got, err
}

// jittered is a TTL for the libraries that are told one with each value and have no jitter of their own.
func (s Setup) jittered() time.Duration {
	return s.TTL - time.Duration(rand.Float64()*s.Jitter*float64(s.TTL))
}

func (c hand) Invalidate(ctx context.Context, key string) error { return c.Del(ctx, key).Err() }

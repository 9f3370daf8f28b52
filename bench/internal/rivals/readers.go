package rivals

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// Readers are ours beside what a read costs at least, with a connection for each that is under way, and twice with one for all.
var Readers = []CacheLibrary{cacheguardShared, PlainGet, OneSocket, AutoPipeline}

// PlainGet is go-redis alone, with its pool. It stores missing values by hand.
var PlainGet = CacheLibrary{Name: "plain GET (pool)", Kind: Shared, Promise: NoPromise, Open: byHand.Open}

// OneSocket is rueidis 1.0.79 without client-side caching: it writes everybody's GETs to one connection as they come, which is
// as much as a connection can do.
var OneSocket = CacheLibrary{
	Name: "rueidis 1.0.79 GET (one socket)", Kind: Multiplexed, Promise: NoPromise,
	Open: func(s Setup) (Cache, error) {
		o := s.rueidis()
		o.DisableCache, o.PipelineMultiplex = true, -1 // one, and not one for each processor
		c, err := rueidis.NewClient(o)
		return socket{c, s}, err
	},
}

type socket struct {
	rueidis.Client
	setup Setup
}

func (c socket) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	got, err := c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
	if err == nil {
		return bytesOf(got), nil
	}
	v, err := load(ctx)
	if err != nil {
		return nil, err
	}
	_ = c.Do(ctx, c.B().Set().Key(key).Value(string(v)).Px(c.setup.jittered()).Build()).Error() // it will be loaded again
	return v, nil
}

func (c socket) Invalidate(ctx context.Context, key string) error {
	return c.Do(ctx, c.B().Del().Key(key).Build()).Error()
}

func (c socket) Close() error {
	c.Client.Close()
	return nil
}

// AutoPipeline is go-redis 9.23.0 with its automatic pipeline: full duplex, a writer and a reader on one connection, as its documentation advises
// for many callers with Redis a network away. It is experimental there.
var AutoPipeline = CacheLibrary{
	Name: "go-redis AutoPipeline (full duplex)", Kind: Multiplexed, Promise: NoPromise,
	Open: func(s Setup) (Cache, error) {
		c := s.client()
		o := redis.DefaultBlockingAutoPipelineOptions()
		o.FullDuplex = true
		p, err := c.AutoPipelineWithOptions(o)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return pipelined{c, p, s}, nil
	},
}

type pipelined struct {
	client *redis.Client
	*redis.AutoPipeliner
	setup Setup
}

func (c pipelined) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	got, err := c.AutoPipeliner.Get(ctx, key).Bytes()
	if err != nil {
		if got, err = load(ctx); err == nil {
			_ = c.Set(ctx, key, got, c.setup.jittered()).Err() // it will be loaded again
		}
	}
	return got, err
}

func (c pipelined) Invalidate(ctx context.Context, key string) error { return c.Del(ctx, key).Err() }

func (c pipelined) Close() error { return errors.Join(c.AutoPipeliner.Close(), c.client.Close()) }

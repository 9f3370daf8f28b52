package rivals

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidisaside"
)

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
	if s.Dial != nil {
		o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return s.Dial(ctx, "tcp", addr)
		}
	}
	return o
}

package rivals

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// cacheguardShared is cacheguard without a local tier, with its defaults.
var cacheguardShared = CacheLibrary{
	Name: "cacheguard", Ours: true, Kind: Shared, Promise: OnePerFleet, Inboxes: true,
	Open: func(s Setup) (Cache, error) { return openGuard(s, cacheguard.LocalConfig{}) },
}

// cacheguardTiered has room for all values in the process's memory, and keeps them for as long as they are fresh.
var cacheguardTiered = CacheLibrary{
	Name: "cacheguard, local tier", Ours: true, Kind: Tiered, Promise: OnePerFleet, Inboxes: true,
	Open: func(s Setup) (Cache, error) { return openGuard(s, s.local()) },
}

func (s Setup) local() cacheguard.LocalConfig {
	return cacheguard.LocalConfig{MaxEntries: max(2*s.Entries, 1000), TTL: s.TTL}
}

type guarded struct {
	*cacheguard.Guard
	rdb io.Closer
}

func openGuard(s Setup, local cacheguard.LocalConfig) (Cache, error) {
	rdb := s.universal()
	jitter := s.Jitter
	if jitter == 0 {
		jitter = -1
	}
	var hedgeAfter, timeout time.Duration
	if s.Waits {
		hedgeAfter, timeout = -1, 10*time.Second
	}
	g, err := cacheguard.New(rdb, cacheguard.Config{
		HedgeAfter: hedgeAfter, RedisTimeout: timeout,
		Prefix: Prefix + "guard", TTL: s.TTL, StaleFor: s.StaleFor, Jitter: jitter, LeaseTTL: s.Lease, Local: local,
		MaxLoads: s.MaxLoads, Observers: s.Observers,
	})
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	if local != (cacheguard.LocalConfig{}) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.SelfCheck(ctx); err != nil { // the tier is used once its subscription stands
			return nil, errors.Join(err, g.Close(), rdb.Close())
		}
	}
	return guarded{g, rdb}, nil
}

func (c guarded) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	return cacheguard.Get(ctx, c.Guard, key, load)
}

func (c guarded) Invalidate(ctx context.Context, key string) error {
	return c.Guard.Invalidate(ctx, key)
}

func (c guarded) Close() error { return errors.Join(c.Guard.Close(), c.rdb.Close()) }

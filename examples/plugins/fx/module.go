// Package fx has Fx open and close what a cache needs. Use it as a pattern for any container: a Guard is made without asking Redis, checked when the service starts, and
// closed after whatever calls it, and before its client. Wire wants the same as a provider that returns func() { guard.Close() } as its clean-up.
package fx

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"github.com/cacheguard/go/cacheguard"
)

// Products load the products of a shop.
type Products interface {
	Product(ctx context.Context, id int64) (string, error)
}

// Module provides a Guard and a cache of products. It needs Products, the client's options, the Guard's Config and a logger. Fx stops what was made last first: servers
// that are given the cache, then the Guard, then the client.
func Module() fx.Option {
	return fx.Module("cache", fx.Provide(newClient, newGuard, newProducts))
}

func newClient(life fx.Lifecycle, options *redis.Options) *redis.Client {
	rdb := redis.NewClient(options) // connects when it is first used
	life.Append(fx.StopHook(rdb.Close))
	return rdb
}

func newGuard(life fx.Lifecycle, rdb *redis.Client, cfg cacheguard.Config, log *slog.Logger) (*cacheguard.Guard, error) {
	guard, err := cacheguard.New(rdb, cfg)
	if err != nil {
		return nil, err
	}
	life.Append(fx.StartStopHook(func(ctx context.Context) {
		if err := guard.SelfCheck(ctx); err != nil {
			log.WarnContext(ctx, "the cache cannot be used as it should", "error", err) // a Guard works without Redis, too
		}
	}, guard.Close))
	return guard, nil
}

func newProducts(guard *cacheguard.Guard, from Products) (*cacheguard.Cache[int64, string], error) {
	return cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{Name: "product", Load: from.Product})
}

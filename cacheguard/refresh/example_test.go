package refresh_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/refresh"
)

func Example() {
	ctx, rdb := context.Background(), redis.NewClient(&redis.Options{Addr: refresh.SharedAddr()})
	refresher, err := refresh.New(refresh.Config[int]{Kind: "product"})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := cacheguard.New(rdb, cacheguard.Config{
		Prefix: "shop", TTL: time.Hour,
		Local:     cacheguard.LocalConfig{MaxBytes: 64 << 20, TTL: time.Minute}, // which hears of invalidations
		Observers: []cacheguard.Observer{refresher},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = guard.Close() }()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, string]{
		Name: "product", Load: func(context.Context, int) (string, error) { return "lamp", nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- refresher.Run(ctx, products) }()
	name, err := products.Get(ctx, 1) // from now on it is loaded after each invalidation
	fmt.Println(name, err)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// lamp <nil>
	// context canceled
}

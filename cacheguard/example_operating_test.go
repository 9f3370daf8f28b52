package cacheguard_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

func ExampleGuard_Inspect() {
	ctx, rdb := context.Background(), newClient()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-inspect", Instance: "shop-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	_, err = cacheguard.Get(ctx, guard, "price:42", func(ctx context.Context) (int, error) {
		i, err := guard.Inspect(ctx, "price:42") // somebody looks while the price is loaded
		if err == nil {
			fmt.Println(i.State, i.Load.Instance, i.Here.Callers)
		}
		return 1999, err
	})
	fmt.Println(err)
	// Output:
	// missing shop-1 1
	// <nil>
}

func ExampleGuard_Bypass() {
	ctx, rdb := context.Background(), newClient()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-bypass"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	price := func() (int, error) {
		return cacheguard.Get(ctx, guard, "price:42", func(context.Context) (int, error) {
			fmt.Println("asks the database")
			return 1999, nil
		})
	}
	guard.Bypass(true)
	fmt.Println(price())
	fmt.Println(price())
	guard.Bypass(false)
	// Output:
	// asks the database
	// 1999 <nil>
	// asks the database
	// 1999 <nil>
}

func ExampleGuard_BypassFleet() {
	ctx, rdb := context.Background(), newClient()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-bypass-fleet"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	if err := guard.BypassFleet(ctx, 10*time.Minute); err != nil { // every instance, for ten minutes
		log.Fatal(err)
	}
	fmt.Println(guard.Stats().Bypassed)
	if err := guard.BypassFleet(ctx, 0); err != nil { // or no longer
		log.Fatal(err)
	}
	fmt.Println(guard.Stats().Bypassed)
	// Output:
	// true
	// false
}

// All instances together run at most 50 loaders.
func ExampleConfig_limiter() {
	rdb := newClient()
	limiter, err := semaphore.NewLimiter(rdb, "product-db", semaphore.Config{Prefix: "example-limiter", Permits: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close() // after the Guard
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-limiter", Limiter: limiter})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	name, err := cacheguard.Get(context.Background(), guard, "product:1", func(context.Context) (string, error) { return "chair", nil })
	fmt.Println(name, err)
	// Output: chair <nil>
}

// Updates hold a lock of three independent servers, which outlives each of them.
func ExampleConfig_writeLock() {
	rdb, one, two, three := newClient(), newClient(), newClient(), newClient() // the last three of servers of their own
	for _, client := range []*redis.Client{rdb, one, two, three} {
		defer client.Close()
	}

	locks, err := mutex.NewQuorum([]mutex.Redis{one, two, three}, mutex.Config{Prefix: "writes"}) // or etcd.New, zookeeper.New, postgres.New, mysql.New
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", WriteLock: locks})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	err = guard.Update(context.Background(), "price:42", func(ctx context.Context) error {
		_, fenced := rwlock.FenceFrom(ctx)
		fmt.Println("writes with a fence:", fenced)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: writes with a fence: true
}

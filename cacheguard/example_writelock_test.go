package cacheguard_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
)

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

// Command readme is the program of README.md.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", TTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	var queries atomic.Int64
	load := func(ctx context.Context) (int, error) {
		queries.Add(1) // here goes SELECT price FROM products WHERE id = 42
		time.Sleep(80 * time.Millisecond)
		return 1999, ctx.Err()
	}

	var callers sync.WaitGroup
	for range 1000 {
		callers.Go(func() {
			price, err := cacheguard.Get(context.Background(), guard, "price:42", load)
			if err != nil || price != 1999 {
				log.Fatal(price, err)
			}
		})
	}
	callers.Wait()
	fmt.Println("1000 callers,", queries.Load(), "query")
}

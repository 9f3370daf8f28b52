package memory_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/memory"
)

func ExampleNew() {
	rdb, err := memory.New(memory.Config{MaxBytes: 64 << 20}) // or redis.NewClient, if there is a Redis
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", TTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	price, err := cacheguard.Get(context.Background(), guard, "price:42", func(context.Context) (int, error) {
		return 1999, nil
	})
	fmt.Println(price, err)
	// Output: 1999 <nil>
}

package cacheguard_test

import (
	"context"
	"fmt"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/semaphore"
)

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

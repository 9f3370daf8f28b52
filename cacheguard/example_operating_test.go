package cacheguard_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/cacheguard/go/cacheguard"
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

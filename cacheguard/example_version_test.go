package cacheguard_test

import (
	"context"
	"fmt"
	"log"

	"github.com/cacheguard/go/cacheguard"
)

// The program before this one stored the price as a number of euros, and still runs on other instances.
func ExampleCacheConfig_version() {
	type productBefore struct {
		Name  string
		Price int // EUR
	}
	type product struct {
		Name  string
		Price struct {
			Cents    int
			Currency string
		}
	}
	ctx, rdb := context.Background(), newClient()
	defer rdb.Close()
	newGuard := func() *cacheguard.Guard {
		guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-cache-version"})
		if err != nil {
			log.Fatal(err)
		}
		return guard
	}
	guardBefore, guard := newGuard(), newGuard()
	defer guardBefore.Close()
	defer guard.Close()

	price := 90
	before, err := cacheguard.NewCache(guardBefore, cacheguard.CacheConfig[int64, productBefore]{
		Name: "product",
		Load: func(context.Context, int64) (productBefore, error) { return productBefore{"Boot", price}, nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, product]{
		Name:    "product",
		Version: 1, // one more whenever product changes so that the program before cannot read it, or this one not that of before
		Load: func(context.Context, int64) (p product, err error) {
			p.Name, p.Price.Cents, p.Price.Currency = "Boot", price*100, "EUR"
			return p, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	old, _ := before.Get(ctx, 42)
	p, _ := products.Get(ctx, 42) // not the other's entry
	fmt.Println(old.Price, p.Price.Cents)

	price = 80
	if err := before.Invalidate(ctx, 42); err != nil { // the program before has the product edited
		log.Print(err)
	}
	p, _ = products.Get(ctx, 42)
	fmt.Println(p.Price.Cents)
	// Output:
	// 90 9000
	// 8000
}

package cacheguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// product is what the examples of Cache are about.
type product struct {
	ID    int64
	Name  string
	Price int
}

// catalogue stands for a repository of products.
type catalogue map[int64]product

var errDiscontinued = errors.New("discontinued")

func (c catalogue) Product(_ context.Context, id int64) (product, error) {
	p, found := c[id]
	if !found {
		return product{}, fmt.Errorf("product %d: %w", id, sql.ErrNoRows)
	}
	return p, nil
}

func (c catalogue) Products(_ context.Context, ids []int64) (map[int64]product, error) {
	fmt.Println("one query for", len(ids))
	found := make(map[int64]product)
	for _, id := range ids {
		if p, ok := c[id]; ok {
			found[id] = p
		}
	}
	return found, nil
}

func (c catalogue) Save(_ context.Context, p product) (product, error) {
	c[p.ID] = p
	return p, nil
}

func ExampleNewCache() {
	ctx, rdb, repo := context.Background(), newClient(), catalogue{42: {42, "Boot", 90}}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-cache"})
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	defer guard.Close()

	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, product]{
		Name:     "product", // product 42 is at example-cache:{product:42}
		Load:     repo.Product,
		LoadMany: repo.Products,
		NotFound: sql.ErrNoRows,                                     // is remembered, and what callers get
		Errors:   map[string]error{"discontinued": errDiscontinued}, // errors.Is finds it on every instance
		TTL:      10 * time.Minute,                                  // what is not set comes from the Guard
	})
	if err != nil {
		log.Fatal(err)
	}

	p, err := products.Get(ctx, 42)
	fmt.Println(p.Name, err)
	_, err = products.Get(ctx, 7)
	fmt.Println(err)
	// Output:
	// Boot <nil>
	// sql: no rows in result set
}

func ExampleCache_GetMany() {
	ctx, rdb, repo := context.Background(), newClient(), catalogue{1: {1, "Boot", 90}, 2: {2, "Shoe", 70}}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-cache-many"})
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	defer guard.Close()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, product]{
		Name: "product", Load: repo.Product, LoadMany: repo.Products,
	})
	if err != nil {
		log.Fatal(err)
	}

	cart, err := products.GetMany(ctx, []int64{1, 2, 3, 2}) // product 3 does not exist
	fmt.Println(len(cart), cart[1].Name, cart[2].Name, err)
	// Output:
	// one query for 3
	// 2 Boot Shoe <nil>
}

func ExampleCache_Put() {
	ctx, rdb, repo := context.Background(), newClient(), catalogue{42: {42, "Boot", 90}}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-cache-put"})
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	defer guard.Close()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, product]{
		Name: "product", Load: func(context.Context, int64) (product, error) { return product{}, errors.New("not called") },
	})
	if err != nil {
		log.Fatal(err)
	}

	err = products.Put(ctx, 42, func(ctx context.Context) (product, error) {
		return repo.Save(ctx, product{42, "Boot", 80}) // with the key's lock; no load stores meanwhile
	})
	fmt.Println(err)
	p, err := products.Get(ctx, 42) // a hit, on every instance
	fmt.Println(p.Price, err)
	// Output:
	// <nil>
	// 80 <nil>
}

func ExampleCache_Invalidate() {
	ctx, rdb, repo := context.Background(), newClient(), catalogue{42: {42, "Boot", 90}}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-cache-invalidate"})
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	defer guard.Close()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, product]{Name: "product", Load: repo.Product})
	if err != nil {
		log.Fatal(err)
	}

	before, _ := products.Get(ctx, 42)
	repo[42] = product{42, "Boot", 80}
	if err := products.Invalidate(ctx, 42); err != nil {
		log.Print(err) // the old product may be served until its TTL ends
	}
	after, err := products.Get(ctx, 42)
	fmt.Println(before.Price, after.Price, err)
	// Output: 90 80 <nil>
}

// A key of several parts defines how it is written.
func ExampleCache_Key() {
	type price struct {
		product  int64
		currency string
	}
	rdb := newClient()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-cache-key"})
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	defer guard.Close()
	prices, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[price, int]{
		Name: "price",
		Load: func(context.Context, price) (int, error) { return 90, nil },
		Key:  func(p price) string { return fmt.Sprintf("%d-%s", p.product, p.currency) },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(prices.Key(price{42, "EUR"})) // for Guard.UpdateMany and the like
	// Output: price:42-EUR
}

// Before an instance serves, it loads what callers will want, and what nobody has loaded yet.
func ExampleCache_Warm() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "example-warm"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, string]{
		Name: "product", Version: 2,
		Load: func(_ context.Context, id int) (string, error) { return fmt.Sprint("product ", id), nil },
		LoadMany: func(_ context.Context, ids []int) (map[int]string, error) {
			all := make(map[int]string)
			for _, id := range ids {
				all[id] = fmt.Sprint("product ", id)
			}
			return all, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	popular := []int{1, 2, 3, 5, 8} // of a query, or of a file
	warmed, err := products.Warm(context.Background(), slices.Values(popular), cacheguard.WarmConfig{})
	fmt.Printf("%+v %v\n", warmed, err)
	// Output:
	// {Loaded:5 Present:0 Failed:0} <nil>
}

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

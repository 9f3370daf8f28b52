package segment_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/segment"
)

// newClient connects to the redis-server of the tests.
func newClient() *redis.Client { return redis.NewClient(&redis.Options{Addr: segment.SharedAddr()}) }

func ExampleCounter_Take() {
	ctx, rdb, sale := context.Background(), newClient(), "sale:"+rand.Text()
	stock, err := segment.New(rdb, segment.Config{Prefix: "stock"})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	if err := stock.Create(ctx, sale, 3); err != nil {
		log.Fatal(err)
	}
	fmt.Println(stock.Take(ctx, sale, 2))
	fmt.Println(errors.Is(stock.Take(ctx, sale, 2), segment.ErrShort))
	fmt.Println(stock.Total(ctx, sale))
	// Output:
	// <nil>
	// true
	// 1 <nil>
}

func ExampleCounter_TakeUpTo() {
	ctx, sale := context.Background(), "sale:"+rand.Text()
	stock, err := segment.New(newClient(), segment.Config{Prefix: "stock"})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	if err := stock.Create(ctx, sale, 3); err != nil {
		log.Fatal(err)
	}
	fmt.Println(stock.TakeUpTo(ctx, sale, 10))
	fmt.Println(stock.Add(ctx, sale, 1)) // one comes back
	fmt.Println(stock.Total(ctx, sale))
	// Output:
	// 3 <nil>
	// <nil>
	// 1 <nil>
}

func ExampleCounter_Create() {
	ctx, sale := context.Background(), "sale:"+rand.Text()
	stock, err := segment.New(newClient(), segment.Config{Prefix: "stock"})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	for range 2 { // several instances start, and each creates the stock
		if err := stock.Create(ctx, sale, 2000); err != nil && !errors.Is(err, segment.ErrExists) {
			log.Fatal(err)
		}
	}
	fmt.Println(stock.Total(ctx, sale))
	// Output: 2000 <nil>
}

func ExampleCounter_Add() {
	ctx, sale := context.Background(), "sale:"+rand.Text()
	stock, err := segment.New(newClient(), segment.Config{Prefix: "stock"})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	if err := stock.Create(ctx, sale, 1); err != nil {
		log.Fatal(err)
	}
	err = stock.Add(ctx, sale, 5)
	fmt.Println(errors.Is(err, segment.ErrUncertain), err) // after ErrUncertain, adding again may add twice
	fmt.Println(stock.Total(ctx, sale))
	// Output:
	// false <nil>
	// 6 <nil>
}

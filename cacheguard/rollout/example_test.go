package rollout_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/rollout"
)

// A rollout on a live system: a share of the keys, always the same ones, which grows.
func ExampleShares() {
	ctx := context.Background()
	var shares rollout.Shares
	guard, err := cacheguard.New(newClient(), cacheguard.Config{
		Prefix: "example-rollout", Gate: shares.Gate,
		HedgeAfter: -1, // queries are counted here, also on a busy machine
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	queries := 0
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, string]{
		Name: "product",
		Load: func(context.Context, int) (string, error) {
			queries++
			return "lamp", nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	two := func() {
		for range 2 {
			_, _ = products.Get(ctx, 42)
		}
		fmt.Println("queries:", queries)
	}
	two()
	shares.Set(map[string]float64{"product": 100}) // after 1 and 10, over some days; from a flag service, a file or a row
	two()
	shares.Off(true) // the kill switch
	two()
	// Output:
	// queries: 2
	// queries: 3
	// queries: 5
}

// Before the cache serves anybody, it is compared with the source: something that writes without Invalidate leaves an old value.
func ExampleComparer() {
	var shares rollout.Shares // lets nobody in but the comparison
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "example-compare", Gate: shares.Gate})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	rows := map[int]string{1: "lamp", 2: "chair"}
	load := func(_ context.Context, id int) (string, error) { return rows[id], nil }
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, string]{Name: "product", Load: load})
	if err != nil {
		fmt.Println(err)
		return
	}
	comparer := rollout.Comparer[int, string]{
		Cache: products, Source: load, Equal: func(a, b string) bool { return a == b },
		Pause: time.Millisecond, // the default is a second
		OnOld: func(id int, cached, source string) {
			fmt.Printf("%s is old: %s, not %s: something writes without Invalidate\n", products.Key(id), cached, source)
		},
	}
	ctx := context.Background()
	comparer.Compare(ctx, 2, nil)
	until := func(seen func(rollout.Seen) bool) { // a service compares a sample again and again
		for range 1000 {
			if comparer.Compare(ctx, 2, nil); seen(comparer.Seen()) {
				return
			}
		}
	}
	until(func(s rollout.Seen) bool { return s.Hits > 0 })
	rows[2] = "armchair" // and nobody invalidates
	until(func(s rollout.Seen) bool { return s.Old > 0 })
	fmt.Println("old:", comparer.Seen().Old)
	// Output:
	// product:2 is old: chair, not armchair: something writes without Invalidate
	// old: 1
}

func newClient() *redis.Client { return redis.NewClient(&redis.Options{Addr: rollout.SharedAddr()}) }

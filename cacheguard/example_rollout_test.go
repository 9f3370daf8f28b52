package cacheguard_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// A rollout on a live system: first nothing is served, and the shadow says what would have been; then more and more is.
func ExampleGuard_SetServe() {
	ctx := context.Background()
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "example-rollout", Shadow: 1})
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
	_, _ = products.Get(ctx, 42) // of the source
	for guard.Stats().Shadowed.Missed == 0 {
		time.Sleep(time.Millisecond) // the shadow asks, and fills the cache, in the background
	}
	shares := func(percent map[string]uint32) func(key string) bool {
		return func(key string) bool {
			h := fnv.New32a()
			_, _ = h.Write([]byte(key)) // always the same keys; it never fails
			kind, _, _ := strings.Cut(key, ":")
			return h.Sum32()%100 < percent[kind]
		}
	}
	guard.SetServe(shares(map[string]uint32{"product": 100, "page": 100, "variant": 100, "slice": 100})) // product after 1 and 10, over some days
	before := queries
	name, err := products.Get(ctx, 42)
	fmt.Println(name, err, "queries:", queries-before)

	guard.SetServe(func(string) bool { return false }) // the kill switch
	_, _ = products.Get(ctx, 42)
	fmt.Println("turned off, queries:", queries-before)
	// Output:
	// lamp <nil> queries: 0
	// turned off, queries: 1
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

// A deployment: the new instance warms what the old ones were asked for most.
func ExampleGuard_Hottest() {
	ctx := context.Background()
	load := func(_ context.Context, id int) (string, error) { return fmt.Sprint("product ", id), nil }
	before, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "example-hottest", Hottest: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	old, err := cacheguard.NewCache(before, cacheguard.CacheConfig[int, string]{Name: "product", Version: 1, Load: load})
	if err != nil {
		fmt.Println(err)
		return
	}
	for id, times := range map[int]int{7: 4000, 8: 800} {
		for range times {
			_, _ = old.Get(ctx, id)
		}
	}
	_ = before.Close() // always nil; it tells what was asked for in the last seconds

	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "example-hottest", Hottest: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, string]{Name: "product", Version: 2, Load: load})
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := guard.Hottest(ctx, 1000) // of all kinds
	if err != nil {
		log.Print(err) // then it starts cold
	}
	var ids []int
	for _, key := range keys {
		if text, is := strings.CutPrefix(key, "product:"); is {
			if id, err := strconv.Atoi(text); err == nil {
				ids = append(ids, id)
			}
		}
	}
	warmed, err := products.Warm(ctx, slices.Values(ids), cacheguard.WarmConfig{})
	fmt.Printf("%v %+v %v\n", keys, warmed, err)
	// Output:
	// [product:7 product:8] {Loaded:2 Present:0 Failed:0} <nil>
}

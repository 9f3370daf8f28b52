package cacheguard_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/cacheguard/go/cacheguard"
)

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

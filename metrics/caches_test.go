package metrics

import (
	"context"
	"errors"
	"testing"

	"github.com/cacheguard/go/cacheguard"
)

func TestCachesAreCountedByTheirNames(t *testing.T) {
	t.Parallel()
	e := newEverything(t)
	newCache := func(name string) *cacheguard.Cache[int, string] {
		c, err := cacheguard.NewCache(e.guard, cacheguard.CacheConfig[int, string]{
			Name: name, Load: func(_ context.Context, id int) (string, error) {
				if id == 0 {
					return "", errors.New("no")
				}
				return "v", nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	product, price := newCache("product"), newCache("price")
	_ = newCache("price") // the same kind
	before := len(e.values())
	for range 2 {
		_, _ = product.Get(t.Context(), 1) // what it returns is counted
		e.stored()
	}
	_, _ = price.GetMany(t.Context(), []int{0, 1, 2})
	_, _ = cacheguard.Get(t.Context(), e.guard, "strange:1", func(context.Context) (string, error) { return "v", nil })
	e.stored()
	for name, want := range map[string]float64{
		"cacheguard_requests_total{cache=product,result=loaded}":        1,
		"cacheguard_requests_total{cache=product,result=hit}":           1,
		"cacheguard_load_duration_seconds{cache=product,result=ok}":     1,
		"cacheguard_request_duration_seconds{cache=product,result=hit}": 1,
		"cacheguard_requests_total{cache=price,result=loaded}":          2,
		"cacheguard_requests_total{cache=price,result=error}":           1,
		"cacheguard_load_duration_seconds{cache=price,result=error}":    1,
		"cacheguard_requests_total{cache=shop,result=loaded}":           1,
		"cacheguard_loads_in_flight{cache=shop}":                        0,
		"cacheguard_damaged_entries_total{cache=price}":                 0,
	} {
		e.want(name, want)
	}
	if after := len(e.values()); after != before {
		t.Errorf("%d series came later", after-before)
	}
}

package cacheguard

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// counting is a loader of a Cache that returns what the source has now.
func counting(now *atomic.Int64) func(context.Context, int) (int64, error) {
	return func(context.Context, int) (int64, error) { return now.Load(), nil }
}

func TestTheTagsOfACacheAreThoseOfItsThings(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{})
	var now atomic.Int64
	cfg := CacheConfig[int, int64]{
		Name: "n", Load: counting(&now),
		Tags: func(id int, _ int64) []string { return []string{fmt.Sprint("parity:", id%2)} },
	}
	one := newCaches(t, f, cfg)
	many := newCaches(t, f, CacheConfig[int, int64]{
		Name: "m", Load: cfg.Load, Tags: cfg.Tags, LoadMany: func(_ context.Context, ids []int) (map[int]int64, error) {
			values := make(map[int]int64)
			for _, id := range ids {
				values[id] = now.Load()
			}
			return values, nil
		},
	})
	fill := func() { // twice, as tags that nobody knew before may not be proven the first time
		for range 2 {
			_, _ = one[0].Get(ctx, 1)
			_, _ = one[0].GetMany(ctx, []int{2, 3})
			_, _ = many[0].GetMany(ctx, []int{1, 2})
			f.stored()
		}
		expect.ErrorIs(t, one[0].Put(ctx, 5, func(context.Context) (int64, error) { return now.Load(), nil }), nil)
	}
	fill()
	now.Store(7)
	mustInvalidateTags(t, f.guards[0], "parity:1")
	values, err := one[1].GetMany(ctx, []int{1, 2, 3, 5})
	expect.Equal(t, "of one", fmt.Sprint(values, err), "map[1:7 2:0 3:7 5:7] <nil>")
	values, err = many[1].GetMany(ctx, []int{1, 2})
	expect.Equal(t, "of many", fmt.Sprint(values, err), "map[1:7 2:0] <nil>")
}

func TestInvalidateAllOfACacheReachesItsKindAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{})
	var now atomic.Int64
	mine := newCaches(t, f, CacheConfig[int, int64]{Name: "mine", Load: counting(&now)})
	other := newCaches(t, f, CacheConfig[int, int64]{Name: "other", Load: counting(&now)})
	for id := range 5 {
		_, _ = mine[0].Get(ctx, id)
		_, _ = other[0].Get(ctx, id)
	}
	f.stored()
	expect.ErrorIs(t, mine[0].Put(ctx, 9, func(context.Context) (int64, error) { return 0, nil }), nil)
	now.Store(7)
	expect.ErrorIs(t, mine[1].InvalidateAll(ctx), nil)
	for i := range 2 {
		for _, id := range []int{0, 1, 2, 3, 4, 9} {
			v, err := mine[i].Get(ctx, id)
			expect.Equal(t, fmt.Sprint("mine ", id), fmt.Sprint(v, " ", err), "7 <nil>")
		}
		v, err := other[i].Get(ctx, 3)
		expect.Equal(t, "other", fmt.Sprint(v, " ", err), "0 <nil>")
	}
	var none *Cache[int, int]
	expect.ErrorIs(t, none.InvalidateAll(ctx), errNilCache)
}

package cacheguard

import (
	"context"
	"fmt"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/watch/observe"
)

func TestTagsAndKeysThatNothingHasAreCountedWhenTheyAreInvalidated(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	products, err := NewCache(g, CacheConfig[int, string]{
		Name: "product", Load: func(ctx context.Context, _ int) (string, error) { SetTags(ctx, "category:shoes"); return "v", nil },
		Tags: func(int, string) []string { return []string{"list"} },
	})
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "category:shoes"))
	expect.Equal(t, "before there was a load", g.journal.Tags.Count(), 0)
	_, err = products.Get(t.Context(), 1)
	expect.ErrorIs(t, err)
	_, err = Get(t.Context(), g, "price:1", func(context.Context) (string, error) { return "v", nil })
	expect.ErrorIs(t, err)

	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "category:hats", "list", "categroy:shoes"))
	expect.ErrorIs(t, g.Invalidate(t.Context(), "product:2", "price:2", "prodcut:1"))
	expect.ErrorIs(t, products.Invalidate(t.Context(), 1))
	in, err := g.Intend(t.Context(), Changes{Keys: []string{"product:1", "prodcut:2"}, Tags: []string{"list"}})
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, in.Also(t.Context(), Changes{Tags: []string{"lists"}}))
	expect.ErrorIs(t, in.Done(t.Context()))
	expect.ErrorIs(t, g.Update(t.Context(), "pirce:1", func(ctx context.Context) error { return Also(ctx, Changes{Tags: []string{"lits"}}) }))
	expect.Equal(t, "tags", times(g.journal.Tags.Unknown()), "map[categroy:1 lists:1 lits:1]")
	expect.Equal(t, "keys", times(g.journal.Keys.Unknown()), "map[pirce:1 prodcut:2]")
	expect.Equal(t, "in Stats", g.Stats().Of("unknown_names"), 6)
}

func TestTagsOfASourceAreKnown(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	_, _, err := Fetch(t.Context(), g, "page:/p/1", Source[string]{Tags: []string{"path:/p/"}, Load: func(context.Context, *string) (string, error) { return "v", nil }})
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "path:/p/"))
	expect.Equal(t, "unknown", g.journal.Tags.Count(), 0)
}

// times is how often each kind was invalidated, as a map is printed.
func times(unknown map[string]observe.Mistyped) string {
	all := make(map[string]uint64)
	for kind, of := range unknown {
		all[kind] = of.Times
	}
	return fmt.Sprint(all)
}

func TestAnInstanceThatOnlyWritesCountsNoTagsOfOthers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	products, err := NewCache(g, CacheConfig[int, string]{
		Name: "product", Load: func(context.Context, int) (string, error) { return "v", nil },
		Tags: func(int, string) []string { return []string{"category:shoes"} },
	})
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, products.Put(t.Context(), 1, func(context.Context) (string, error) { return "v", nil }))
	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "list"))
	expect.Equal(t, "unknown to a writer", g.journal.Tags.Count(), 0)
}

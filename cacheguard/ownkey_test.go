package cacheguard

import (
	"context"
	"errors"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// ofOwnKey are the ways in which a loader can have its own key invalidated.
var ofOwnKey = map[string]func(ctx context.Context, c *Cache[int, string]) error{
	"Invalidate":          func(ctx context.Context, c *Cache[int, string]) error { return c.Invalidate(ctx, 1) },
	"without its context": func(_ context.Context, c *Cache[int, string]) error { return c.Invalidate(context.Background(), 1) },
	"InvalidateAll":       func(ctx context.Context, c *Cache[int, string]) error { return c.InvalidateAll(ctx) },
	"InvalidateTags":      func(ctx context.Context, c *Cache[int, string]) error { return c.guard.InvalidateTags(ctx, "tag") },
	"Done": func(ctx context.Context, c *Cache[int, string]) error {
		in, err := c.guard.Intend(ctx, c.Changes(1))
		return errors.Join(err, in.Done(ctx))
	},
	"Update": func(ctx context.Context, c *Cache[int, string]) error {
		return c.Update(ctx, 1, func(context.Context) error { return nil })
	},
	"Put": func(ctx context.Context, c *Cache[int, string]) error {
		return c.Put(ctx, 1, func(context.Context) (string, error) { return "put", nil })
	},
}

// The invalidation must not wait for the load, which waits for it: LoadTimeout alone would end that.
func TestALoaderThatHasItsOwnKeyInvalidatedEnds(t *testing.T) {
	t.Parallel()
	for name, invalidate := range ofOwnKey {
		for what, ask := range map[string]func(c *Cache[int, string]) (string, error){
			"Get": func(c *Cache[int, string]) (string, error) { return c.Get(context.Background(), 1) },
			"GetMany": func(c *Cache[int, string]) (string, error) {
				all, err := c.GetMany(context.Background(), []int{1})
				return all[1], err
			},
		} {
			t.Run(name+" in a "+what, func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, standalone(t), 1, Config{LoadTimeout: off, WaitTimeout: off})
				var c *Cache[int, string]
				c = newCaches(t, f, CacheConfig[int, string]{
					Name: "own", Tags: func(int, string) []string { return []string{"tag"} },
					Load: func(ctx context.Context, _ int) (string, error) { return "loaded", invalidate(ctx, c) },
				})[0]
				got := make(chan reply[string], 1)
				go func() { // owner: the test; ends with the call; joined by receiving
					v, err := ask(c)
					got <- reply[string]{v, err}
				}()
				redistest.Await(t, "it ends", func() bool { return len(got) > 0 })
				want(t, got, "loaded")
				f.stored()
				v, how, err := c.ask(t.Context(), 1)
				expect.Equal(t, "error", err, nil)
				expect.Equal(t, "what was loaded is served: "+string(how), v == "loaded" && how != Loaded, false)
			})
		}
	}
}

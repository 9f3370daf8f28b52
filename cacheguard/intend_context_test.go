package cacheguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Within its context, reads see the transaction, and nobody else does.
func TestReadsWithinAnIntentGoPastTheCache(t *testing.T) {
	t.Parallel()
	for name, local := range map[string]LocalConfig{"with a tier": {MaxEntries: 100, TTL: time.Hour}, "without": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing, Local: local}).listening()
			g := f.guards[0]
			for range 2 {
				mustGet(t, g, "row", returns("old"))
				mustGet(t, g, "list", tagged("old", "shoes"))
				mustGet(t, g, "other", tagged("old", "hats"))
			}
			in := mustIntend(t, g, Changes{})
			ctx := in.Context(t.Context())
			reads := func(ctx context.Context, key, value string) {
				t.Helper()
				v, err := Get(ctx, g, key, tagged("uncommitted", "shoes"))
				expect.Equal(t, key, fmt.Sprint(v, err), value+"<nil>")
				many, err := GetMany(ctx, g, []string{key}, func(ctx context.Context, keys []string) (map[string]string, error) {
					SetTags(ctx, "shoes")
					return map[string]string{key: "uncommitted"}, nil
				})
				expect.Equal(t, key+" of many", fmt.Sprint(many[key], err), value+"<nil>")
			}
			reads(ctx, "row", "old") // nothing is named yet
			expect.Equal(t, "Also", in.Also(ctx, Changes{Keys: []string{"row"}}), nil)
			reads(ctx, "row", "uncommitted")
			reads(ctx, "list", "old")
			expect.Equal(t, "Also", in.Also(ctx, Changes{Tags: []string{"shoes"}}), nil)
			for _, key := range []string{"row", "list", "missing"} {
				reads(ctx, key, "uncommitted")
			}
			reads(ctx, "other", "old")
			for _, key := range []string{"row", "list", "other"} {
				expect.Equal(t, key+", for others", mustGet(t, g, key, unwanted[string](t)), "old")
			}
			expect.Equal(t, "missing, for others", mustGet(t, g, "missing", returns("v")), "v")

			slow := newSource("uncommitted") // nobody shares its load
			within := asyncCtx(ctx, g, "row", slow.load)
			<-slow.begun
			nested := mustIntend(t, g, Changes{Keys: []string{"row"}})
			v, err := Get(nested.Context(context.Background()), g, "row", returns("another transaction's"))
			expect.Equal(t, "another transaction", fmt.Sprint(v, err), "another transaction's<nil>")
			v, err = Get(nested.Context(ctx), g, "row", returns("nested"))
			expect.Equal(t, "a nested one", fmt.Sprint(v, err), "nested<nil>")
			v, err = Get(nested.Context(ctx), g, "list", returns("nested"))
			expect.Equal(t, "a tag of the outer one", fmt.Sprint(v, err), "nested<nil>")
			mustDone(t, nested)
			close(slow.release)
			want(t, within, "uncommitted")
			mustDone(t, in)
			mustGet(t, g, "row", returns("new"))
			expect.Equal(t, "afterwards", mustGet(t, g, "row", unwanted[string](t)), "new")
			v, err = Get(ctx, g, "row", unwanted[string](t))
			expect.Equal(t, "with the context", fmt.Sprint(v, err), "new<nil>")
		})
	}
}

func TestReadsWithinAWriteGoPastTheCacheForWhatItNames(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	g := f.guards[0]
	mustGet(t, g, "j", returns("old"))
	err := g.Update(t.Context(), "k", func(ctx context.Context) error {
		expect.Equal(t, "Also", Also(ctx, Changes{Keys: []string{"j"}}), nil)
		v, err := Get(ctx, g, "j", returns("uncommitted"))
		expect.Equal(t, "value", v, "uncommitted")
		expect.Equal(t, "for others", mustGet(t, g, "j", unwanted[string](t)), "old")
		return err
	})
	expect.Equal(t, "error", err, nil)
}

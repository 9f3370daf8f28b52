package testing

import (
	"context"
	"slices"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
)

// The mistakes of docs/mistakes.md that only a test of the program can find, each beside the way without it.

// table is a table of one column, and what a transaction that has not committed would write.
type table struct{ rows, pending map[string]string }

func newTable() *table {
	return &table{map[string]string{"tea": "3", "menu": "tea", "cart": "tea"}, map[string]string{}}
}

func (d *table) Set(id, row string) { d.pending[id] = row }

func (d *table) Commit() {
	for id, row := range d.pending {
		d.rows[id] = row
	}
	clear(d.pending)
}

// reads returns a reader through the cache, which fails the test if it does not get the row that it expects. What it loads is stored when it returns.
func reads(t *testing.T, env *cacheguardtest.Env, db *table) func(id, row string) {
	return func(id, row string) {
		t.Helper()
		got, err := cacheguard.Get(t.Context(), env.Guard, id, func(ctx context.Context) (string, error) {
			cacheguard.SetTags(ctx, "shows:tea")
			return db.rows[id], nil
		})
		if got != row || err != nil {
			t.Errorf("Get(%q) = %q, %v; want %q", id, got, err, row)
		}
		env.Settle()
	}
}

func TestACommitAfterUpdateReturnedLeavesTheOldPrice(t *testing.T) {
	t.Parallel()
	env, db, ctx := cacheguardtest.New(t, cacheguard.Config{}), newTable(), t.Context()
	want := reads(t, env, db)

	err := env.Guard.Update(ctx, "tea", func(context.Context) error {
		db.Set("tea", "4")
		return nil // the caller commits
	})
	want("tea", "3") // somebody reads now, and what it reads is stored
	db.Commit()
	want("tea", "3") // until its TTL is over
	if err != nil {
		t.Fatal(err)
	}

	in, err := env.Guard.Intend(ctx, cacheguard.Changes{Keys: []string{"tea"}})
	if err != nil {
		t.Fatal(err)
	}
	db.Set("tea", "5")
	want("tea", "3")
	db.Commit()
	if err := in.Done(ctx); err != nil {
		t.Fatal(err)
	}
	want("tea", "5")
}

func TestATagThatNoLoaderSetsInvalidatesNothing(t *testing.T) {
	t.Parallel()
	env, db, ctx := cacheguardtest.New(t, cacheguard.Config{}), newTable(), t.Context()
	want := reads(t, env, db)

	want("menu", "tea")
	db.Set("menu", "tea, cake")
	db.Commit()
	if err := env.Guard.InvalidateTags(ctx, "show:tea"); err != nil { // the loader says shows:tea
		t.Fatal(err)
	}
	want("menu", "tea")
	if err := env.Guard.InvalidateTags(ctx, "shows:tea"); err != nil {
		t.Fatal(err)
	}
	want("menu", "tea, cake")
}

func TestACartThatIsChangedAsItWasCachedLosesWhatAnotherHasAdded(t *testing.T) {
	t.Parallel()
	env, db, ctx := cacheguardtest.New(t, cacheguard.Config{}), newTable(), t.Context()
	want := reads(t, env, db)
	save := func(row func() string) {
		err := env.Guard.Update(ctx, "cart", func(context.Context) error {
			db.Set("cart", row())
			db.Commit()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	mine, others := db.rows["cart"], db.rows["cart"] // two requests got it from the cache
	save(func() string { return mine + ", milk" })
	save(func() string { return others + ", cake" })
	want("cart", "tea, cake") // the milk is lost

	save(func() string { return db.rows["cart"] + ", milk" }) // reads within write, from the database
	want("cart", "tea, cake, milk")
}

func TestALoaderThatDecidesByItsCallerAnswersAllWithTheFirst(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	type language struct{}
	get := func(key, of string) string {
		got, err := cacheguard.Get(context.WithValue(t.Context(), language{}, of), env.Guard, key, func(ctx context.Context) (string, error) {
			return "in " + ctx.Value(language{}).(string), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := []string{get("menu", "German"), get("menu", "French"), get("menu:de", "German"), get("menu:fr", "French")}
	if !slices.Equal(got, []string{"in German", "in German", "in German", "in French"}) {
		t.Errorf("the readers got %q", got)
	}
}

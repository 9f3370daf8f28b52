package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vikstrous/dataloadgen"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/plugins/dataloader"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestADataloaderLoadsWhatIsMissingTogether(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	errLocked := errors.New("locked")
	loaded := make(chan []int64, 9)
	products := newCaches(t, f, cacheguard.CacheConfig[int64, string]{
		Name: "product", Errors: map[string]error{"locked": errLocked},
		Load: func(context.Context, int64) (string, error) { return "", errLocked },
		LoadMany: func(_ context.Context, ids []int64) (map[int64]string, error) {
			loaded <- slices.Sorted(slices.Values(ids))
			found := make(map[int64]string)
			for _, id := range ids {
				if id < 100 { // others do not exist
					found[id] = fmt.Sprint("product ", id)
				}
			}
			return found, nil
		},
	})
	resolve := func(instance int, ids ...int64) ([]string, error) { // a request whose resolvers ask one by one
		together := []dataloadgen.Option{dataloadgen.WithWait(time.Minute), dataloadgen.WithBatchCapacity(len(ids))}
		return dataloader.New(products[instance], together...).LoadAll(t.Context(), ids)
	}

	names, err := resolve(0, 1, 2)
	expect.ErrorIs(t, err)
	expect.Equal(t, "names", fmt.Sprint(names), "[product 1 product 2]")
	expect.Equal(t, "loaded", fmt.Sprint(<-loaded), "[1 2]")

	names, err = resolve(1, 1, 2, 3, 100)
	expect.ErrorIs(t, err, dataloadgen.ErrNotFound)
	expect.Equal(t, "names of another request", fmt.Sprintf("%q", names), `["product 1" "product 2" "product 3" ""]`)
	expect.Equal(t, "loaded by another instance", fmt.Sprint(<-loaded), "[3 100]")
}

func TestAnErrorOfOneKeyFailsNoOtherOfADataloader(t *testing.T) {
	t.Parallel()
	errLocked := errors.New("locked")
	products := newCaches(t, newFleet(t), cacheguard.CacheConfig[int64, string]{
		Name: "product",
		Load: func(_ context.Context, id int64) (string, error) {
			if id == 7 {
				return "", errLocked
			}
			return "boot", nil
		},
	})
	loader := dataloader.New(products[0], dataloadgen.WithWait(time.Minute), dataloadgen.WithBatchCapacity(2))
	locked, boot := loader.LoadThunk(t.Context(), 7), loader.LoadThunk(t.Context(), 8)
	_, err := locked()
	expect.ErrorIs(t, err, errLocked)
	got, err := boot()
	expect.ErrorIs(t, err)
	expect.Equal(t, "the other", got, "boot")
}

// What a transaction reads through its dataloader is what it sees, together, and is stored for nobody.
func TestADataloaderWithinATransactionReadsWhatThatSees(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	type txKey struct{}
	withTx := func(ctx context.Context, tx map[int64]string) context.Context {
		return context.WithValue(ctx, txKey{}, tx)
	}
	committed := map[int64]string{1: "boot", 2: "shoe"}
	loaded := make(chan []int64, 9)
	caches := newCaches(t, f, cacheguard.CacheConfig[int64, string]{
		Name: "product",
		Load: func(context.Context, int64) (string, error) { return "", errors.New("one by one") },
		LoadMany: func(ctx context.Context, ids []int64) (map[int64]string, error) {
			loaded <- slices.Sorted(slices.Values(ids))
			rows, within := ctx.Value(txKey{}).(map[int64]string)
			if !within {
				rows = committed
			}
			found := make(map[int64]string)
			for _, id := range ids {
				found[id] = rows[id]
			}
			return found, nil
		},
	})
	guard, products, ctx := f.guards[0], caches[0], t.Context()
	transaction := func(tx map[int64]string) error {
		in, err := guard.Intend(ctx, products.Changes(1))
		if err != nil {
			return err
		}
		defer in.Done(context.WithoutCancel(ctx)) // after the commit
		within := in.Context(withTx(ctx, tx))
		loader := dataloader.New(products)
		names, err := loader.LoadAll(within, []int64{1, 2})
		if err != nil {
			return err
		}
		expect.Equal(t, "within", fmt.Sprint(names), "[boots shoe]")
		return nil
	}
	must(t, transaction(map[int64]string{1: "boots", 2: "shoe"})) // and is rolled back
	expect.Equal(t, "loaded together", fmt.Sprint(<-loaded), "[1 2]")
	f.stored(t)
	names, err := dataloader.New(products).LoadAll(ctx, []int64{1, 2})
	expect.ErrorIs(t, err)
	expect.Equal(t, "for others", fmt.Sprint(names), "[boot shoe]")
	expect.Equal(t, "loaded again", fmt.Sprint(<-loaded), "[1 2]")
}

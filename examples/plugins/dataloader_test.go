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

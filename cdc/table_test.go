package cdc

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestRowsNamesTheOldThingAndTheNewOne(t *testing.T) {
	t.Parallel()
	guard, err := cacheguard.New(redis.NewClient(&redis.Options{}), cacheguard.Config{Disabled: true})
	expect.ErrorIs(t, err)
	defer guard.Close()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{
		Name: "product", Load: func(context.Context, int64) (string, error) { return "", nil },
	})
	expect.ErrorIs(t, err)
	why := errors.New("no key")
	table := Rows("products", products, func(r Row) (int64, error) {
		if r.IsNull("id") {
			return 0, why
		}
		return r.Int64("id")
	})
	row := func(id any) Row { return NewRow([]string{"id"}, func(int) (any, error) { return id, nil }) }
	changes := table.Changed(Change{Op: Update, Old: row(int64(1)), New: row(int64(2))})
	expect.Equal(t, "keys", len(changes.Keys), 2)
	expect.Equal(t, "the old key", changes.Keys[0], products.Key(1))
	expect.Equal(t, "the new key", changes.Keys[1], products.Key(2))
	expect.Equal(t, "keys of an INSERT", len(table.Changed(Change{Op: Insert, New: row(int64(2))}).Keys), 1)
	bad := row(nil)
	expect.Equal(t, "keys of a row without one", len(table.Changed(Change{Op: Delete, Old: bad}).Keys), 0)
	expect.ErrorIs(t, bad.Failed(), why)
	expect.Equal(t, "the Guard", table.Kinds[0].Guard(), guard)
	var none *cacheguard.Cache[int64, string]
	expect.Equal(t, "the Guard of no Cache", none.Guard(), nil)
	expect.Equal(t, "a table without a Cache", Rows[int64, string]("products", none, nil).Changed == nil, true)
}

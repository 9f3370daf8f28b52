package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
)

// oldProduct is what the program before this one stores: numbers of products are texts. Neither program could read what
// the other one stores; CacheConfig.Version keeps them apart.
type oldProduct struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

// before is the program before this one. Its instances still run while this one is deployed.
type before struct {
	*testing.T
	products *cacheguard.Cache[int64, oldProduct]
	loads    int // the test makes one call at a time
}

func startBefore(t *testing.T, s *store, env *cacheguardtest.Env) *before {
	t.Helper()
	guard, err := cacheguard.New(env.Redis, cacheguard.Config{Prefix: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.Equal(t, "closing the guard", guard.Close(), nil) })
	b := &before{T: t}
	b.products, err = cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, oldProduct]{
		Name:    "product",
		Version: 1,
		Load: func(ctx context.Context, id int64) (oldProduct, error) {
			b.loads++
			p, err := s.Product(ctx, id)
			return oldProduct{fmt.Sprint(p.ID), p.Cents}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *before) cents(id int64) int {
	b.Helper()
	p, err := b.products.Get(b.Context(), id)
	expect.Equal(b, "error of the program before", err, nil)
	expect.Equal(b, "number of the product", p.ID, fmt.Sprint(id))
	return p.Cents
}

func TestADeploymentWithAnotherStructDisturbsNeitherProgram(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	old, i := startBefore(t, s, env), start(t, s, env.Redis)

	price := old.cents(42)
	for range 3 {
		expect.Equal(t, "the price in the new program", i.cents(42), price)
		expect.Equal(t, "the price in the old program", old.cents(42), price)
		env.Settle() // what was loaded is stored
	}
	expect.Equal(t, "loads of the old program", old.loads, 1)
	expect.Equal(t, "loads of both", env.Loads("product:42"), 2)

	i.write(http.StatusNoContent, http.MethodPut, "/products/42/price?cents=1", "")
	expect.Equal(t, "the new price in the old program", old.cents(42), 1)
	expect.Equal(t, "the new price in the new program", i.cents(42), 1)
	env.Settle()
	expect.Equal(t, "Update of the old program", old.products.Update(t.Context(), 42, func(ctx context.Context) error {
		_, err := s.SetPrice(ctx, 42, 2)
		return err
	}), nil)
	expect.Equal(t, "its price in the new program", i.cents(42), 2)
	expect.Equal(t, "its price in the old program", old.cents(42), 2)
}

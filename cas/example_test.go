package cas_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cas"
)

// newClient connects to the redis-server of the tests.
func newClient() *redis.Client { return redis.NewClient(&redis.Options{Addr: cas.SharedAddr()}) }

type cart struct{ Items []string }

func ExampleUpdate() {
	ctx, rdb := context.Background(), newClient()
	store, err := cas.New(rdb, cas.Config{Prefix: "example-cart", TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	got, err := cas.Update(ctx, store, "user:7", func(old cart, _ bool) (cart, error) {
		if !slices.Contains(old.Items, "book") { // this may run again, when somebody else was faster
			old.Items = append(old.Items, "book")
		}
		return old, nil
	})
	fmt.Println(got.Items, err)
	// Output: [book] <nil>
}

func ExampleSwap() {
	ctx := context.Background()
	store, err := cas.New(newClient(), cas.Config{Prefix: "example-swap"})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	first, err := cas.Swap(ctx, store, "page", "", "draft") // create it
	if err != nil {
		log.Fatal(err)
	}
	if _, err := cas.Swap(ctx, store, "page", first, "published"); err != nil {
		log.Fatal(err)
	}
	_, err = cas.Swap(ctx, store, "page", first, "an edit of the draft")
	fmt.Println(errors.Is(err, cas.ErrConflict))

	text, version, err := cas.Get[string](ctx, store, "page")
	fmt.Println(text, err)
	fmt.Println(cas.Delete(ctx, store, "page", version))
	// Output:
	// true
	// published <nil>
	// <nil>
}

func ExampleGet() {
	ctx := context.Background()
	store, err := cas.New(newClient(), cas.Config{Prefix: "example-get"})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	_, version, err := cas.Get[cart](ctx, store, "user:8")
	fmt.Println(errors.Is(err, cas.ErrNotFound), version == "") // Swap creates it with this version
	// Output: true true
}

func ExampleDelete() {
	ctx := context.Background()
	store, err := cas.New(newClient(), cas.Config{Prefix: "example-delete"})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	seen, err := cas.Swap(ctx, store, "page", "", "draft")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := cas.Swap(ctx, store, "page", seen, "somebody else's edit"); err != nil {
		log.Fatal(err)
	}
	err = cas.Delete(ctx, store, "page", seen) // nobody deletes what he has not seen
	fmt.Println(errors.Is(err, cas.ErrConflict))
	// Output: true
}

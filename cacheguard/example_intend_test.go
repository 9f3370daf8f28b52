package cacheguard_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/cacheguard/go/cacheguard"
)

// transaction stands for one of a database, such as *sql.Tx.
type transaction struct{}

func (transaction) Ship(context.Context, int) (products []string, err error) {
	return []string{"product:7", "product:9"}, nil // UPDATE … RETURNING
}
func (transaction) Commit() error   { return nil }
func (transaction) Rollback() error { return nil }

// A transaction that begins and commits elsewhere, and whose statement says only afterwards what it has changed.
func ExampleGuard_Intend() {
	ctx, rdb, tx := context.Background(), newClient(), transaction{}
	defer rdb.Close()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	ship := func(order int) error {
		in, err := guard.Intend(ctx, cacheguard.Changes{Keys: []string{fmt.Sprint("order:", order)}, Tags: []string{"open orders"}})
		if err != nil {
			return err // Redis could not be told: nothing is written
		}
		defer in.Done(ctx) // after the commit, a rollback or a panic; does nothing the second time
		defer tx.Rollback()

		shipped, err := tx.Ship(ctx, order)
		if err != nil {
			return err
		}
		if err := in.Also(ctx, cacheguard.Changes{Keys: shipped}); err != nil { // before the commit
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		return in.Done(ctx) // no Get that begins now returns an older value
	}
	fmt.Println(ship(42))
	// Output: <nil>
}

// The write of an Update names what else it changes, before it commits.
func ExampleAlso() {
	ctx, rdb, tx := context.Background(), newClient(), transaction{}
	defer rdb.Close()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	err = guard.Update(ctx, "order:42", func(ctx context.Context) error {
		defer tx.Rollback()
		shipped, err := tx.Ship(ctx, 42)
		if err != nil {
			return err
		}
		if err := cacheguard.Also(ctx, cacheguard.Changes{Keys: shipped, Tags: []string{"open orders"}}); err != nil {
			return err
		}
		return tx.Commit() // write contains the commit
	})
	fmt.Println(err)
	// Output: <nil>
}

// What a POST answers. 503 means "try again", so nothing was written; 201 after a commit, even if Redis could not be told.
func ExampleClassOf() {
	ctx, rdb := context.Background(), newClient()
	defer rdb.Close()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	statuses := map[cacheguard.Class]int{
		cacheguard.ClassNone: 201, cacheguard.ClassCommitted: 201, cacheguard.ClassAbsent: 404,
		cacheguard.ClassUnavailable: 503, cacheguard.ClassCanceled: 504, cacheguard.ClassFailed: 500,
	}
	post := func(w http.ResponseWriter, write func(context.Context) error) {
		err := guard.Update(ctx, "orders of 7", write)
		w.WriteHeader(statuses[cacheguard.ClassOf(err)])
	}
	for _, write := range []func(context.Context) error{
		func(context.Context) error { return nil },
		func(context.Context) error { return errors.New("no such product") },
	} {
		answer := httptest.NewRecorder()
		post(answer, write)
		fmt.Println(answer.Code)
	}
	_ = guard.Close()
	answer := httptest.NewRecorder()
	post(answer, func(context.Context) error { return nil })
	fmt.Println(answer.Code)
	// Output:
	// 201
	// 500
	// 503
}

// What is made of other cached things is named after them, and ends when they have ended.
func ExampleGuard_Intend_order() {
	ctx, rdb, repo := context.Background(), newClient(), catalogue{42: {42, "Boot", 90}}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-intend-order"})
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	defer guard.Close()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, product]{Name: "product", Load: repo.Product})
	if err != nil {
		log.Fatal(err)
	}
	views, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{
		Name: "view",
		Load: func(ctx context.Context, id int64) (string, error) {
			p, err := products.Get(ctx, id)
			return fmt.Sprintf("%s: %d €", p.Name, p.Price), err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	setPrice := func(ctx context.Context, id int64, price int) error {
		in, err := guard.Intend(ctx, products.Changes(id), views.Changes(id))
		if err != nil {
			return err
		}
		defer in.Done(ctx)
		repo[id] = product{id, "Boot", price} // and the commit
		return in.Done(ctx)                   // the product first, then the view
	}

	fmt.Println(views.Get(ctx, 42))
	fmt.Println(setPrice(ctx, 42, 80))
	fmt.Println(views.Get(ctx, 42))
	// Output:
	// Boot: 90 € <nil>
	// <nil>
	// Boot: 80 € <nil>
}

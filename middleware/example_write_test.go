package middleware_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

// A row, and the pages that show it, have one tag of the Guard. So a write names that alone, before its commit and after it.
func Example_write() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "rows-and-pages"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	price := 1999
	ofProduct := func(id int) string { return fmt.Sprint("product:", id) }
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, int]{
		Name: "product", Load: func(context.Context, int) (int, error) { return price, nil },
		Tags: func(id, _ int) []string { return []string{ofProduct(id)} },
	})
	if err != nil {
		log.Fatal(err)
	}
	pages, err := middleware.New(guard, middleware.Config{})
	if err != nil {
		log.Fatal(err)
	}
	shop := pages.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cacheguard.SetTags(r.Context(), ofProduct(42))
		product, err := products.Get(r.Context(), 42)
		if err != nil {
			http.Error(w, "no product", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Vary", "Accept-Language")
		_, _ = fmt.Fprint(w, product)
	}))
	show := func() {
		product, err := products.Get(context.Background(), 42)
		fmt.Println(product, err, get(shop, "/products/42"))
	}
	show()
	write := func(ctx context.Context) error {
		in, err := guard.Intend(ctx, cacheguard.Changes{Tags: []string{ofProduct(42)}})
		if err != nil {
			return err
		}
		defer in.Done(ctx)
		price = 1499 // and the commit
		return in.Done(ctx)
	}
	if err := write(context.Background()); err != nil {
		log.Print(err)
	}
	show()
	// Output:
	// 1999 <nil> 1999
	// 1499 <nil> 1499
}

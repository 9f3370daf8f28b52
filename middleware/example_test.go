package middleware_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

func newClient() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: middleware.SharedAddr()})
}

// get asks a handler for a page.
func get(h http.Handler, path string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Body.String()
}

func ExampleCache_Handler() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "pages"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{})
	if err != nil {
		log.Fatal(err)
	}

	r := chi.NewRouter()
	r.Use(cache.Handler)
	r.Get("/products/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the handler runs")
		w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=600")
		_, _ = io.WriteString(w, "product "+chi.URLParam(r, "id"))
	})
	fmt.Println(get(r, "/products/42"))
	fmt.Println(get(r, "/products/42"))
	// Output:
	// the handler runs
	// product 42
	// product 42
}

func ExampleCache_InvalidateTags() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "tagged-pages"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{})
	if err != nil {
		log.Fatal(err)
	}
	price := 1999
	pages := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Cache-Tag", "product-42, prices")
		_, _ = fmt.Fprint(w, price)
	}))
	fmt.Println(get(pages, "/products/42"), get(pages, "/offers"))
	price = 1499
	if err := cache.InvalidateTags(context.Background(), "product-42"); err != nil {
		log.Print(err) // other instances may go on serving the old price
	}
	fmt.Println(get(pages, "/products/42"), get(pages, "/offers"))
	// Output:
	// 1999 1999
	// 1499 1499
}

func ExampleCache_PurgeHandler() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "purged-pages"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{})
	if err != nil {
		log.Fatal(err)
	}
	secret, price := "wFf3", 1999
	pages := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = fmt.Fprint(w, price)
	}))
	purge := cache.PurgeHandler(func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+secret })
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "PURGE" {
			purge.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
	fmt.Println(get(service, "/products/42"))
	price = 1499
	r := httptest.NewRequest("PURGE", "/products/42", nil)
	r.Header.Set("Authorization", "Bearer wFf3")
	w := httptest.NewRecorder()
	service.ServeHTTP(w, r)
	fmt.Println(w.Code, get(service, "/products/42"))
	// Output:
	// 1999
	// 204 1499
}

func ExampleNew() {
	rdb := newClient()
	defer rdb.Close()
	guard, err := cacheguard.New(rdb, cacheguard.Config{
		Prefix: "shop-pages",
		Local:  cacheguard.LocalConfig{MaxBytes: 64 << 20}, // hot pages cost no round trip
	})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{
		StaleIfError: time.Hour,            // an old page stands in for a handler that fails
		Prefixes:     []string{"/catalog"}, // what InvalidatePrefix may be called with
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/catalog/", cache.Handler(http.NotFoundHandler()))
	// Output:
}

func ExampleCache_Invalidate() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "invalidated-pages"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{})
	if err != nil {
		log.Fatal(err)
	}
	price := 1999
	pages := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = fmt.Fprint(w, price)
	}))
	fmt.Println(get(pages, "http://shop.example/products/42"))
	price = 1499
	page, err := http.NewRequest(http.MethodGet, "http://shop.example/products/42", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := cache.Invalidate(context.Background(), page); err != nil {
		log.Print(err) // other instances may go on serving the old price
	}
	fmt.Println(get(pages, "http://shop.example/products/42"))
	// Output:
	// 1999
	// 1499
}

func ExampleCache_Warm() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "warmed-pages"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{})
	if err != nil {
		log.Fatal(err)
	}
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = io.WriteString(w, "page")
	})
	sitemap := strings.NewReader(`<urlset><url><loc>https://shop.example/</loc></url><url><loc>https://shop.example/offers</loc></url></urlset>`)

	urls, err := middleware.Sitemap(sitemap)
	if err != nil {
		log.Fatal(err)
	}
	header := http.Header{"Accept-Encoding": {"gzip"}, "X-Forwarded-Proto": {"https"}} // as clients and the proxy in front send them
	stored, err := cache.Warm(context.Background(), pages, slices.Values(urls), header)
	fmt.Println(stored, err)
	// Output:
	// 2 <nil>
}

func ExampleCache_InvalidatePrefix() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "prefixed-pages"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{Prefixes: []string{"/catalog"}})
	if err != nil {
		log.Fatal(err)
	}
	edition := 1
	pages := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = fmt.Fprint(w, edition)
	}))
	fmt.Println(get(pages, "/catalog/shoes"), get(pages, "/catalog/hats"))
	edition = 2
	if err := cache.InvalidatePrefix(context.Background(), "/catalog"); err != nil {
		log.Print(err)
	}
	fmt.Println(get(pages, "/catalog/shoes"), get(pages, "/catalog/hats"))
	// Output:
	// 1 1
	// 2 2
}

// Authentication stands in front and says who asks, and each user has pages of their own.
func ExampleKey() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: "user-pages"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	type user struct{}
	users := map[string]string{"Bearer a1": "ann", "Bearer b2": "bob"}
	cache, err := middleware.New(guard, middleware.Config{
		Target: "Shop-Cache-Control",
		Key: middleware.Key{Claim: func(r *http.Request) string {
			id, _ := r.Context().Value(user{}).(string)
			return id
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	pages := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, no-cache")
		w.Header().Set("Shop-Cache-Control", "public, max-age=60")
		_, _ = fmt.Fprint(w, "orders of ", r.Context().Value(user{}))
	}))
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := users[r.Header.Get("Authorization")]
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		pages.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), user{}, id)))
	})
	for _, token := range []string{"Bearer a1", "Bearer b2", "Bearer a1", "none"} {
		r, w := httptest.NewRequest(http.MethodGet, "/orders", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", token)
		service.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body, w.Header().Get("Cache-Control"), strings.Contains(w.Header().Get("Cache-Status"), "hit"))
	}
	// Output:
	// 200 orders of ann private, no-cache false
	// 200 orders of bob private, no-cache false
	// 200 orders of ann private, no-cache true
	// 401   false
}

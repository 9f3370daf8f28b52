package adapters_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/mux"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

// newCache returns a cache on a Redis of its own, and what closes both.
func newCache() (*middleware.Cache, func()) {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	guard, err := cacheguard.New(rdb, cacheguard.Config{})
	if err != nil {
		log.Fatal(err)
	}
	cache, err := middleware.New(guard, middleware.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return cache, func() {
		_ = guard.Close() // always nil
		_ = rdb.Close()   // nobody uses it any more
		server.Close()
	}
}

// product is the page of the examples.
func product(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "max-age=60")
	_, _ = io.WriteString(w, "product") // a client that has left
}

// ask prints what a service answers to HEAD, and then to two GETs.
func ask(service http.Handler) {
	for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodGet} {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest(method, "/products/42", nil))
		status, _, _ := strings.Cut(w.Header().Get("Cache-Status"), "; ttl=")
		fmt.Println(w.Code, status)
	}
}

func Example_serveMux() {
	cache, stop := newCache()
	defer stop()

	routes := http.NewServeMux()
	routes.HandleFunc("GET /products/{id}", product)
	service := cache.Handler(routes)

	ask(service)
	// Output:
	// 200 cacheguard; fwd=uri-miss; fwd-status=200
	// 200 cacheguard; hit
	// 200 cacheguard; hit
}

func Example_chi() {
	cache, stop := newCache()
	defer stop()

	r := chi.NewRouter()
	r.Use(chimiddleware.GetHead, cache.Handler)
	r.Get("/products/{id}", product)

	ask(r)
	// Output:
	// 200 cacheguard; fwd=uri-miss; fwd-status=200
	// 200 cacheguard; hit
	// 200 cacheguard; hit
}

func Example_chiPurge() {
	cache, stop := newCache()
	defer stop()
	const secret = "a secret"

	chi.RegisterMethod("PURGE") // before the router is made

	r := chi.NewRouter()
	r.Use(chimiddleware.GetHead)
	r.Method("PURGE", "/*", cache.PurgeHandler(func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+secret }))
	r.With(cache.Handler).Get("/products/{id}", product)

	ask(r)
	purge := httptest.NewRequest("PURGE", "/products/42", nil)
	purge.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, purge)
	fmt.Println(w.Code)
	ask(r)
	// Output:
	// 200 cacheguard; fwd=uri-miss; fwd-status=200
	// 200 cacheguard; hit
	// 200 cacheguard; hit
	// 204
	// 200 cacheguard; fwd=uri-miss; fwd-status=200
	// 200 cacheguard; hit
	// 200 cacheguard; hit
}

func Example_gorilla() {
	cache, stop := newCache()
	defer stop()

	r := mux.NewRouter()
	r.Use(cache.Handler)
	r.HandleFunc("/products/{id}", product).Methods(http.MethodGet, http.MethodHead)

	ask(r)
	// Output:
	// 200 cacheguard; fwd=uri-miss; fwd-status=200
	// 200 cacheguard; hit
	// 200 cacheguard; hit
}

func Example_echo() {
	cache, stop := newCache()
	defer stop()

	e := echo.New()
	e.GET("/products/:id", echo.WrapHandler(http.HandlerFunc(product)))
	service := cache.Handler(e)

	ask(service)
	// Output:
	// 200 cacheguard; fwd=uri-miss; fwd-status=200
	// 200 cacheguard; hit
	// 200 cacheguard; hit
}

// Echo's middlewares may stand in front of the cache: one that decides who may ask, say.
func Example_echoMiddleware() {
	cache, stop := newCache()
	defer stop()

	pages := echo.New()
	pages.GET("/products/:id", echo.WrapHandler(http.HandlerFunc(product)))

	e := echo.New()
	e.Use(echo.WrapMiddleware(func(http.Handler) http.Handler { return cache.Handler(pages) }))

	ask(e)
	// Output:
	// 200 cacheguard; fwd=uri-miss; fwd-status=200
	// 200 cacheguard; hit
	// 200 cacheguard; hit
}

func Example_gin() {
	cache, stop := newCache()
	defer stop()
	gin.SetMode(gin.ReleaseMode)

	r := gin.New()
	r.GET("/products/:id", gin.WrapF(product))
	service := cache.Handler(r)

	ask(service)
	// Output:
	// 200 cacheguard; fwd=uri-miss; fwd-status=200
	// 200 cacheguard; hit
	// 200 cacheguard; hit
}

// gin's middlewares may stand in front of the cache: one that decides who may ask, say.
func Example_ginMiddleware() {
	cache, stop := newCache()
	defer stop()
	gin.SetMode(gin.ReleaseMode)

	pages := gin.New()
	pages.GET("/products/:id", gin.WrapF(product))

	r := gin.New()
	r.Any("/products/*rest", gin.WrapH(cache.Handler(pages)))

	ask(r)
	// Output:
	// 200 cacheguard; fwd=uri-miss; fwd-status=200
	// 200 cacheguard; hit
	// 200 cacheguard; hit
}

package middleware_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

// asked sends GETs of a path with a field each, and prints how they were answered.
func asked(h http.Handler, path string, fields ...string) {
	for _, field := range fields {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Set(name, value)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		how, _, _ := strings.Cut(w.Header().Get("Cache-Status"), "; ttl")
		fmt.Println(w.Code, w.Body.String()+w.Header().Get("Xkey"), strings.TrimPrefix(how, "cacheguard; "))
	}
}

// guardOf is a Guard with a Prefix of its own.
func guardOf(prefix string) *cacheguard.Guard {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{Prefix: prefix})
	if err != nil {
		log.Fatal(err)
	}
	return guard
}

func Example_comingFromNginx() {
	guard := guardOf("from-nginx")
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{
		Key:          middleware.Key{Cookies: []string{"theme"}},                               // proxy_cache_key … $cookie_theme
		StatusTTL:    map[int]time.Duration{200: 10 * time.Minute},                             // proxy_cache_valid 200 10m
		StoreErrors:  map[int]time.Duration{404: time.Minute},                                  // proxy_cache_valid 404 1m
		StaleIfError: time.Hour,                                                                // proxy_cache_use_stale error timeout
		Limits:       middleware.Limits{Admit: time.Minute},                                    // proxy_cache_min_uses 2
		Bypass:       func(r *http.Request) bool { return len(r.CookiesNamed("preview")) > 0 }, // proxy_cache_bypass, proxy_no_cache
	})
	if err != nil {
		log.Fatal(err)
	}
	service := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/styled" {
			w.Header().Set("Cache-Control", "max-age=600, stale-while-revalidate=60") // proxy_cache_background_update
		}
		_, _ = io.WriteString(w, "page")
	}))
	asked(service, "/", "X-A: b", "X-A: b", "X-A: b", "Cookie: preview=1")
	asked(service, "/styled", "Cookie: theme=dark", "Cookie: theme=dark", "Cookie: theme=dark", "Cookie: theme=light")
	// Output:
	// 200 page fwd=uri-miss; fwd-status=200; detail=first
	// 200 page fwd=uri-miss; fwd-status=200
	// 200 page hit
	// 200 page fwd=bypass
	// 200 page fwd=uri-miss; fwd-status=200; detail=first
	// 200 page fwd=uri-miss; fwd-status=200
	// 200 page hit
	// 200 page fwd=vary-miss; fwd-status=200; detail=first
}

func Example_comingFromVarnish() {
	guard := guardOf("from-varnish")
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{
		Bypass:       func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/preview") }, // return (pass)
		SortQuery:    true,                                                                            // std.querysort
		Key:          middleware.Key{IgnoreQuery: []string{"utm_*"}},                                  // regsuball(req.url, …)
		StatusTTL:    map[int]time.Duration{200: 5 * time.Minute},                                     // beresp.ttl
		StaleIfError: time.Hour,                                                                       // beresp.grace, when the backend is sick
		HideFields:   []string{"Xkey"},                                                                // unset resp.http.xkey
	})
	if err != nil {
		log.Fatal(err)
	}
	pages := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Xkey", "product-42")
		_, _ = io.WriteString(w, "page")
	}))
	purge := cache.PurgeHandler(func(r *http.Request) bool { return strings.HasPrefix(r.RemoteAddr, "192.0.2.") })
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "PURGE" {
			purge.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
	asked(service, "/?a=1&b=2&utm_source=x", "X-A: b")
	asked(service, "/?b=2&a=1", "X-A: b")
	asked(service, "/preview/1", "X-A: b")
	w := httptest.NewRecorder()
	service.ServeHTTP(w, httptest.NewRequest("PURGE", "/?a=1&b=2", nil))
	fmt.Println(w.Code)
	asked(service, "/?b=2&a=1", "X-A: b")
	// Output:
	// 200 page fwd=uri-miss; fwd-status=200
	// 200 page hit
	// 200 page fwd=bypass
	// 204
	// 200 page fwd=uri-miss; fwd-status=200
}

func Example_comingFromSouin() {
	guard := guardOf("from-souin")
	defer guard.Close()
	excluded := regexp.MustCompile("^/admin")
	cache, err := middleware.New(guard, middleware.Config{
		KeyFields:    []string{"X-Tenant"},                                                   // cache_keys: headers
		DefaultTTL:   time.Minute,                                                            // ttl
		StaleIfError: time.Hour,                                                              // stale
		Bypass:       func(r *http.Request) bool { return excluded.MatchString(r.URL.Path) }, // regex: exclude
	})
	if err != nil {
		log.Fatal(err)
	}
	service := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "page")
	}))
	asked(service, "/", "X-Tenant: a", "X-Tenant: a", "X-Tenant: b")
	asked(service, "/admin", "X-Tenant: a")
	// Output:
	// 200 page fwd=uri-miss; fwd-status=200
	// 200 page hit
	// 200 page fwd=vary-miss; fwd-status=200
	// 200 page fwd=bypass
}

func Example_comingFromStampede() {
	guard, err := cacheguard.New(newClient(), cacheguard.Config{
		Prefix: "from-stampede", Local: cacheguard.LocalConfig{MaxEntries: 512, TTL: time.Second},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	cache, err := middleware.New(guard, middleware.Config{DefaultTTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	r := chi.NewRouter()
	r.With(cache.Handler).Get("/products/{id}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "page")
	})
	asked(r, "/products/42", "X-A: b", "X-A: b")
	// Output:
	// 200 page fwd=uri-miss; fwd-status=200
	// 200 page hit
}

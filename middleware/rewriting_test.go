package middleware

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/cacheguard/go/internal/testing/expect"
)

// rewriting is a page behind a middleware that changes the URL of the request that it got.
func rewriting(serve http.HandlerFunc) *page {
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/products", serve)
	return newPage(chimiddleware.PathRewrite("/products", "/v2/products")(mux).ServeHTTP)
}

func TestAMiddlewareBehindTheCacheMayChangeTheURLInPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ method, field string }{
		"GET":                   {http.MethodGet, "X-A: 1"},
		"HEAD":                  {http.MethodHead, "X-A: 1"},
		"a range":               {http.MethodGet, "Range: bytes=0-1"},
		"a request that passes": {http.MethodGet, "Cache-Control: no-store"},
	} {
		for _, says := range map[string]http.HandlerFunc{"may be stored": says("page", fresh), "may not": says("page", "Cache-Control: private")} {
			f := newFleet(t, 1, Config{KeyInStatus: true}, rewriting(says))
			for range 2 {
				a := f.do(0, c.method, "/products", c.field)
				expect.Equal(t, name+": it is found", a.StatusCode < 300, true)
				expect.Equal(t, name+": the key has the URL that was asked for", strings.HasSuffix(a.cacheStatus(), host+`/products"`), true)
			}
		}
	}
}

// A handler may run beside what is in front of the cache, when it renews a page in the background. Two that write to one map end the
// process: chi sets path values each time it routes.
func TestWhatAHandlerSetsInItsRequestIsNotSeenInFront(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		body := r.PathValue("id") + r.Form.Get("a")
		r.SetPathValue("id", "behind")
		r.Form.Set("a", "behind")
		says(body, fresh)(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	cached := f.caches[0].Handler(p)
	f.front(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("id", "in ")
		expect.ErrorIs(t, r.ParseForm())
		cached.ServeHTTP(w, r)
		expect.Equal(t, "the path value", r.PathValue("id"), "in ")
		expect.Equal(t, "the form", r.Form.Get("a"), "front")
	}))
	for range 2 {
		expect.Equal(t, "body", f.get("/?a=front").body, "in front")
	}
}

func TestARejected304IsFollowedByARequestForTheSameURL(t *testing.T) {
	t.Parallel()
	stale := true
	f := newFleet(t, 1, Config{}, rewriting(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case stale:
			stalePage(w, r)
		case r.Header.Get("If-None-Match") != "":
			w.Header().Set("Etag", `"b"`)
			w.WriteHeader(http.StatusNotModified)
		default:
			says("new", fresh)(w, r)
		}
	}))
	f.warm("/products")
	stale = false
	expect.Equal(t, "afterwards", f.get("/products").body, "new")
}

// Proxies that were written by hand change the URL and the Host of the request that they got.
func TestAnUnsafeRequestInvalidatesThePageThatItNamedWhateverItsHandlerMakesOfIt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *http.Request){
		"the URL":  func(r *http.Request) { r.URL = &url.URL{Scheme: "https", Host: "backend", Path: "/x"} },
		"in place": func(r *http.Request) { r.URL.Scheme, r.URL.Host, r.URL.Path = "https", "backend", "/x" },
		"the host": func(r *http.Request) { r.Host = "backend" },
		"its line": func(r *http.Request) { r.RequestURI = "" },
		"all of it": func(r *http.Request) {
			r.URL.Scheme, r.URL.Host, r.URL.Path, r.Host, r.RequestURI = "https", "backend", "/x", "backend", ""
		},
	} {
		p := newPage(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.Header().Set("Location", "/list")
			}
			change(r)
			says("page", fresh)(w, r)
		})
		f := newFleet(t, 1, Config{}, p)
		f.warm("/products")
		f.warm("/list")
		f.do(0, http.MethodPost, "/products")
		calls := p.calls.Load()
		f.get("/products")
		f.get("/list")
		expect.Equal(t, name+": calls after a POST", p.calls.Load()-calls, 2)
	}
}

package middleware

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/internal/testing/expect"
)

// stalePage is a page that has to be validated at once.
var stalePage = says("page", fresh, "Age: 70", `ETag: "a"`)

func TestA304ThatMayNotBeStoredReachesItsClientOnly(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"a cookie": "Set-Cookie: session=secret",
		"private":  "Cache-Control: private, max-age=60",
		"no-store": "Cache-Control: no-store, max-age=60",
		"Vary":     "Vary: *",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(stalePage)
			f := newFleet(t, 1, Config{}, p)
			f.get("/")
			field, value, _ := strings.Cut(line, ": ")
			p.serve = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Etag", `"a"`)
				w.Header().Set(field, value)
				if r.Header.Get("If-None-Match") != "" {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				_, _ = io.WriteString(w, "mine")
			}
			mine := f.get("/")
			expect.Equal(t, "the client's own status", mine.StatusCode, http.StatusOK)
			expect.Equal(t, "the field for the client", mine.Header.Get(field), value)
			p.serve = says("page", fresh)
			others := f.get("/")
			expect.Equal(t, "what others get", others.body, "page")
			expect.Equal(t, "another client gets the field", others.Header.Get(field) == value, false)
		})
	}
}

// The handler is called twice for such a 304, and chi's routing context remembers the first time.
func TestARejected304IsFollowedByARequestThroughTheSameRoutes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	stale := true
	products := chi.NewRouter()
	products.Get("/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.Header().Set("Etag", `"b"`)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if stale {
			stalePage(w, r)
			return
		}
		says("new "+chi.URLParam(r, "id"), fresh)(w, r)
	})
	router := chi.NewRouter()
	router.Use(f.caches[0].Handler)
	router.Mount("/products", products)
	f.front(router)
	expect.Equal(t, "before", f.get("/products/1").body, "page")
	stale = false
	expect.Equal(t, "afterwards", f.get("/products/1").body, "new 1")
}

// No origin on net/http can send such a 304, so this is not a row of the conformance table.
func TestA304ChangesContentType(t *testing.T) {
	t.Parallel()
	p := newPage(stalePage)
	f := newFleet(t, 1, Config{}, p)
	f.get("/")
	p.serve = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/x")
		w.WriteHeader(http.StatusNotModified)
	}
	a := f.get("/")
	expect.Equal(t, "body", a.body, "page")
	expect.Equal(t, "Content-Type", a.Header.Get("Content-Type"), "text/x")
}

// A field set under another spelling is sent too, and means the same to clients.
func TestFieldNamesAreComparedWithoutCase(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"set-cookie": "session=secret", "cache-control": "private", "CDN-cache-control": "no-store", "vary": "*",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header()[name] = []string{value}
			})
			f := newFleet(t, 1, Config{}, p)
			for range 2 {
				a := f.get("/")
				expect.Equal(t, "the field", strings.Contains(strings.Join(a.Header.Values(name), ", "), value), true)
			}
			expect.Equal(t, "calls", p.calls.Load(), 2)
		})
	}
}

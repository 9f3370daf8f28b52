package middleware

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// mounted is two applications behind one cache, mounted by http.StripPrefix.
func mounted(t *testing.T, cfg Config) (f *fleet, calls map[string]*page) {
	f = newFleet(t, 1, cfg, http.NotFoundHandler())
	mux := http.NewServeMux()
	calls = make(map[string]*page)
	for _, name := range []string{"admin", "shop"} {
		p := newPage(says(name, fresh))
		calls[name] = p
		mux.Handle("/"+name+"/", http.StripPrefix("/"+name, f.caches[0].Handler(p)))
	}
	f.front(mux)
	return f, calls
}

func TestApplicationsBehindStripPrefixHaveTheirOwnPages(t *testing.T) {
	t.Parallel()
	f, calls := mounted(t, Config{})
	for range 2 {
		expect.Equal(t, "admin", f.get("/admin/list").body, "admin")
		expect.Equal(t, "shop", f.get("/shop/list").body, "shop")
	}
	expect.Equal(t, "calls", calls["shop"].calls.Load(), 1)
}

func TestAPageBehindStripPrefixIsInvalidatedByTheURLThatClientsKnow(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(f *fleet) error{
		"by request": func(f *fleet) error { return f.invalidate("/shop/list") },
		"by POST":    func(f *fleet) error { f.do(0, http.MethodPost, "/shop/list"); return nil },
		"by prefix":  func(f *fleet) error { return f.caches[0].InvalidatePrefix(f.t.Context(), "/shop/") },
		"by the prefix that the application knows": func(f *fleet) error {
			return f.caches[0].InvalidatePrefix(f.t.Context(), "/list")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, calls := mounted(t, Config{Prefixes: []string{"/shop/", "/list"}})
			f.get("/shop/list")
			f.get("/shop/list")
			before := calls["shop"].calls.Load()
			expect.Equal(t, "calls", before, 1)
			expect.Equal(t, "error", invalidate(f), nil)
			before = calls["shop"].calls.Load()
			f.get("/shop/list")
			expect.Equal(t, "calls after it", calls["shop"].calls.Load()-before, 1)
		})
	}
}

// Handlers that clean paths take these for the same page.
func TestAnAliasOfAPathFallsUnderItsPrefix(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"//shop/a", "/x/../shop/a", "/./shop/a", "/%2Fshop/a", "/x/%2e%2e/shop/a"} {
		p := newPage(says("page", fresh))
		f := newFleet(t, 1, Config{Prefixes: []string{"/shop/"}}, p)
		f.raw(t, "GET "+alias+" HTTP/1.1")
		expect.Equal(t, "error", f.caches[0].InvalidatePrefix(t.Context(), "/shop/"), nil)
		f.raw(t, "GET "+alias+" HTTP/1.1")
		expect.Equal(t, "calls for "+alias, p.calls.Load(), 2)
	}
}

// A middleware in front may rewrite one URL into several pages.
func TestAURLThatIsRewrittenInFrontIsSeveralPages(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	pages := f.caches[0].Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		says(r.URL.Path, fresh)(w, r)
	}))
	f.servers[0].Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r2 := r.Clone(r.Context())
		r2.URL.Path = "/" + r.Header.Get("X-Group") + r.URL.Path
		pages.ServeHTTP(w, r2)
	})
	for range 2 {
		expect.Equal(t, "a", f.get("/x", "X-Group: a").body, "/a/x")
		expect.Equal(t, "b", f.get("/x", "X-Group: b").body, "/b/x")
	}
}

func TestCachesWithOtherSpacesHaveOtherPages(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	var caches []*Cache
	for _, space := range []string{"admin", "shop"} {
		cache, err := New(f.guards[0], Config{Space: space})
		if err != nil {
			t.Fatal(err)
		}
		caches = append(caches, cache)
	}
	handler := func(i int) string {
		w := httptest.NewRecorder()
		caches[i].Handler(says([]string{"admin", "shop"}[i], fresh, "Cache-Tag: t")).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Body.String() + w.Header().Get("Cache-Status")[:len("cacheguard; hit")]
	}
	expect.Equal(t, "admin", handler(0), "admincacheguard; fwd")
	expect.Equal(t, "shop", handler(1), "shopcacheguard; fwd")
	f.stored()
	expect.Equal(t, "error", caches[0].InvalidateTags(t.Context(), "t"), nil)
	expect.Equal(t, "shop, when a tag of admin's was invalidated", handler(1), "shopcacheguard; hit")
	expect.Equal(t, "admin", handler(0), "admincacheguard; fwd")
}

package middleware

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Routes have settings of their own: each a Cache on the same Guard, or a Bypass that asks chi for the route.
func TestRoutesOfChiHaveSettingsOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := newPage(says("page"))
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	with := func(cfg Config) func(http.Handler) http.Handler {
		cache, err := New(f.guards[0], cfg)
		if err != nil {
			t.Fatal(err)
		}
		return cache.Handler
	}
	polls := func(r *http.Request) bool { return chi.RouteContext(r.Context()).RoutePattern() == "/poll/{id}" }
	r := chi.NewRouter()
	r.With(with(Config{DefaultTTL: time.Hour})).Get("/products/{id}", p.ServeHTTP)
	r.With(with(Config{})).Get("/orders/{id}", p.ServeHTTP)
	r.With(with(Config{DefaultTTL: time.Hour, Bypass: polls})).Get("/poll/{id}", p.ServeHTTP)
	f.front(r)
	for path, calls := range map[string]int64{"/products/1": 1, "/orders/1": 2, "/poll/1": 2} {
		p.calls.Store(0)
		f.get(path)
		f.get(path)
		expect.Equal(t, path, p.calls.Load(), calls)
	}
}

// http.ServeMux compares hosts letter by letter, and may have chosen another handler in front.
func TestARouterInFrontThatReadsTheHostCannotBeDeceivedByItsLetters(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	routes := http.NewServeMux()
	routes.Handle(host+"/", f.caches[0].Handler(says("the shop", fresh)))
	routes.Handle("/", f.caches[0].Handler(says("somebody else", fresh)))
	f.front(routes)
	f.warm("/", "Host: "+strings.ToUpper(host))
	expect.Equal(t, "the others", f.get("/").body, "the shop")
	expect.ErrorIs(t, f.invalidate("/"))
	expect.Equal(t, "invalidated with the page", isHit(f.get("/", "Host: "+strings.ToUpper(host))), false)
}

package middleware

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestInformationalResponsesAndTrailersPass(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-More", "43")
	})
	f := newFleet(t, 1, Config{}, p)
	for range 2 {
		a := f.get("/")
		expect.Equal(t, "body", a.body, "hello")
		expect.Equal(t, "trailer", a.Trailer.Get("X-Sum"), "42")
		expect.Equal(t, "unannounced trailer", a.Trailer.Get("X-More"), "43")
		expect.Equal(t, "the trailer as a header", a.Header.Get("X-Sum"), "")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

func TestAHandlerMayHijackTheConnection(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhijacked")
		_ = rw.Flush()
	}))
	for range 2 {
		expect.Equal(t, "body", f.get("/").body, "hijacked")
		expect.Equal(t, "body of a request that is passed on", f.get("/", "Cache-Control: no-store").body, "hijacked")
	}
}

func TestAnEventStreamIsReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			_, _ = io.WriteString(w, "data\n")
			w.(http.Flusher).Flush()
			<-next
		}
	}))
	res, err := f.client.Get(f.urls[0] + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for range 2 {
		if line, err := lines.ReadString('\n'); line != "data\n" || err != nil {
			t.Errorf("got %q, %v", line, err)
		}
		next <- struct{}{}
	}
}

func TestAFlushedResponseThatStatesNoLifetimeIsNotStored(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		<-next
	})
	f := newFleet(t, 1, Config{DefaultTTL: 60e9}, p)
	res, err := f.client.Get(f.urls[0] + "/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	close(next)
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	}
	_ = res.Body.Close()
	redistest.Await(t, "it is over", func() bool { return f.count(Passed) == 1 })
}

func TestATruncatedBodyIsNotStored(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "12345")
	})
	f := newFleet(t, 1, Config{}, p)
	for range 2 {
		if _, err := f.try(0, "GET", "/"); err == nil {
			t.Error("the client did not notice")
		}
	}
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

func TestAStalePageIsServedWhileOneInstanceMakesItAnew(t *testing.T) {
	t.Parallel()
	p := newPage(says("old", "Cache-Control: max-age=60, stale-while-revalidate=600", "Age: 70", `ETag: "a"`))
	f := newFleet(t, 2, Config{}, p)
	f.get("/")
	<-p.begun
	p.serve, p.hold = says("new", fresh), make(chan struct{})
	for i := range 10 {
		expect.Equal(t, "body", f.do(i%2, "GET", "/").body, "old")
	}
	<-p.begun
	close(p.hold)
	redistest.Await(t, "the page is new", func() bool { return f.get("/").body == "new" })
	expect.Equal(t, "calls", p.calls.Load(), 2)
	expect.Equal(t, "stale", f.count(Stale) >= 10, true)
}

// chi reuses its routing context when a request has been answered. A background refresh must not see that of another request.
func TestABackgroundRefreshSeesItsOwnChiRoute(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	hold, ids := make(chan struct{}), make(chan string, 10)
	router := chi.NewRouter()
	router.Use(f.caches[0].Handler)
	first := true
	router.Get("/products/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !first {
			<-hold
		}
		first = false
		ids <- chi.URLParam(r, "id")
		says("p"+chi.URLParam(r, "id"), "Cache-Control: max-age=60, stale-while-revalidate=600", "Age: 70")(w, r)
	})
	router.Get("/other/{id}", says("other", "Cache-Control: no-store"))
	f.front(router)
	f.get("/products/1")
	expect.Equal(t, "made", <-ids, "1")
	expect.Equal(t, "stale", f.get("/products/1").body, "p1")
	for range 20 {
		f.get("/other/2")
	}
	close(hold)
	expect.Equal(t, "made in the background", <-ids, "1")
}

func TestOnResponseGetsTheRoutePattern(t *testing.T) {
	t.Parallel()
	routes := make(chan string, 10)
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	cache, err := New(f.guards[0], Config{OnResponse: func(_ *http.Request, res Response) { routes <- res.Route }})
	if err != nil {
		t.Fatal(err)
	}
	router := chi.NewRouter()
	router.Use(cache.Handler)
	router.Get("/products/{id}", says("p", fresh))
	router.Post("/products/{id}", says("p"))
	fails := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	router.Get("/failing/{id}", fails)
	router.Post("/failing/{id}", fails)
	shop := chi.NewRouter()
	shop.Get("/{id}", says("s", fresh))
	router.Mount("/shop", shop)
	mux := http.NewServeMux()
	mux.Handle("/", router)
	mux.Handle("GET /std/{id}", cache.Handler(says("p", fresh)))
	f.front(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }()
		mux.ServeHTTP(w, r)
	}))
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/products/1", "/products/{id}"},
		{"GET", "/products/1", "/products/{id}"},
		{"POST", "/products/1", "/products/{id}"},
		{"GET", "/failing/1", "/failing/{id}"},
		{"POST", "/failing/1", "/failing/{id}"},
		{"GET", "/shop/1", "/shop/{id}"},
		{"GET", "/shop/1", "/shop/{id}"},
		{"GET", "/std/1", "GET /std/{id}"},
		{"GET", "/std/1", "GET /std/{id}"},
	} {
		f.do(0, c.method, c.path)
		expect.Equal(t, c.method+" "+c.path, <-routes, c.want)
	}
}

// Also in the responses to those that joined the load.
func TestAPageThatTimesOutIsNamedByItsRoute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mount        func(cached func(http.Handler) http.Handler, page http.HandlerFunc) http.Handler
		path, wanted string
	}{
		"Use": {func(cached func(http.Handler) http.Handler, page http.HandlerFunc) http.Handler {
			r := chi.NewRouter()
			r.Use(cached)
			r.Get("/products/{id}", page)
			return r
		}, "/products/1", "/products/{id}"},
		"Use of a router that is mounted": {func(cached func(http.Handler) http.Handler, page http.HandlerFunc) http.Handler {
			shop, r := chi.NewRouter(), chi.NewRouter()
			shop.Use(cached)
			shop.Get("/{id}/", page)
			r.Mount("/shop", shop)
			return r
		}, "/shop/1/", "/shop/{id}"},
		"With": {func(cached func(http.Handler) http.Handler, page http.HandlerFunc) http.Handler {
			r := chi.NewRouter()
			r.With(cached).Get("/products/{id}", page)
			return r
		}, "/products/1", "/products/{id}"},
		"a ServeMux in front": {func(cached func(http.Handler) http.Handler, page http.HandlerFunc) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("GET /products/{id}", cached(page))
			return mux
		}, "/products/1", "GET /products/{id}"},
		"a ServeMux behind": {func(cached func(http.Handler) http.Handler, page http.HandlerFunc) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("GET /products/{id}", page)
			return cached(mux)
		}, "/products/1", "GET /products/{id}"},
		"http.StripPrefix in front": {func(cached func(http.Handler) http.Handler, page http.HandlerFunc) http.Handler {
			r := chi.NewRouter()
			r.With(func(next http.Handler) http.Handler { return http.StripPrefix("/shop", next) }, cached).Get("/shop/{id}", page)
			return r
		}, "/shop/1", "/shop/{id}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				guard := inBubble(t, cacheguard.Config{})
				answers := make(chan Response, 2)
				cache, err := New(guard, Config{OnResponse: func(_ *http.Request, res Response) { answers <- res }})
				expect.ErrorIs(t, err)
				handler := c.mount(cache.Handler, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				for range cap(answers) {
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
					go handler.ServeHTTP(httptest.NewRecorder(), r) // owner: the test; ends with LoadTimeout; joined by its answer
				}
				for range cap(answers) {
					res := <-answers
					expect.Equal(t, "status", res.Status, http.StatusGatewayTimeout)
					expect.Equal(t, "route", res.Route, c.wanted)
				}
			})
		})
	}
}

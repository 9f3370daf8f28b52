package rivals

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	chistampede "github.com/go-chi/stampede"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

// Pages cache what a handler answers, each as chi's routes have it: Get asks for a page of the key's name, and the loader is
// what the handler does. The local tier is compared with libraries that have nothing but memory, as no other has both. All are mounted with
// Use, where hits do without chi's routing.
var Pages = []CacheLibrary{middlewareShared, handPages, middlewareLocal, stampede, BarePages}

// bare is the kind of a handler that nothing caches.
const bare Kind = "the handler"

// BarePages is the handler behind its router: the least that a page can cost.
var BarePages = CacheLibrary{
	Name: "bare handler", Kind: bare, Promise: NoPromise,
	Open: func(s Setup) (Cache, error) { return &site{handler: routed(s.origin)}, nil },
}

// site is one instance of a service that has pages.
type site struct {
	handler    http.Handler
	invalidate func(context.Context, *http.Request) error // nil: the library offers none
	close      func() error                               // nil: nothing is open
}

func routed(origin http.HandlerFunc, through ...func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(through...)
	r.Get("/pages/{id}", origin)
	return r
}

const path = "/pages/"

// origin is the handler whose pages are cached. The caller says what it loads.
func (s Setup) origin(w http.ResponseWriter, r *http.Request) {
	body, err := loadWith(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", s.TTL/time.Second))
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write(body) // a client that does not get it fails for that
}

func (c *site) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	got := answer{header: make(http.Header)}
	c.handler.ServeHTTP(&got, pageRequest(load.with(ctx), key))
	return got.page(key)
}

// pageRequest is as a server makes it.
func pageRequest(ctx context.Context, key string) *http.Request {
	r := &http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: path + key}, Host: "pages.test", Header: make(http.Header), Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return r.WithContext(ctx)
}

func (c *site) Invalidate(ctx context.Context, key string) error {
	if c.invalidate == nil {
		return nil
	}
	return c.invalidate(ctx, pageRequest(ctx, key))
}

func (c *site) Close() error {
	if c.close == nil {
		return nil
	}
	return c.close()
}

// answer is a client in the same process. A page that comes in one piece is kept as it is, since nobody here writes into
// one afterwards: to copy it would be charged to everybody. (Errors are written from buffers that are used again.)
type answer struct {
	header http.Header
	status int
	body   []byte
}

func (a *answer) Header() http.Header { return a.header }
func (a *answer) WriteHeader(s int)   { a.status = s }
func (a *answer) Write(p []byte) (int, error) {
	if a.body == nil && a.status <= http.StatusOK {
		a.body = p[:len(p):len(p)]
	} else {
		a.body = append(a.body, p...)
	}
	return len(p), nil
}

func (a *answer) page(key string) ([]byte, error) {
	if a.status > http.StatusOK {
		return nil, fmt.Errorf("%s: status %d: %s", key, a.status, strings.TrimSpace(string(a.body)))
	}
	return a.body, nil
}

// download is an answer that comes over a network.
func download(by http.RoundTripper, r *http.Request) (*answer, error) {
	response, err := by.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return &answer{response.Header, response.StatusCode, body}, err
}

// middlewareShared is the middleware without a local tier, with its defaults.
var middlewareShared = CacheLibrary{
	Name: "middleware", Ours: true, Kind: Shared, Promise: OnePerFleet, Inboxes: true,
	Open: func(s Setup) (Cache, error) { return openMiddleware(s, cacheguard.LocalConfig{}) },
}

// middlewareLocal has room for all pages in the process's memory.
var middlewareLocal = CacheLibrary{
	Name: "middleware, local tier", Ours: true, Kind: Local, Promise: OnePerFleet, Inboxes: true,
	Open: func(s Setup) (Cache, error) { return openMiddleware(s, s.local()) },
}

func openMiddleware(s Setup, local cacheguard.LocalConfig) (Cache, error) {
	g, err := openGuard(s, local)
	if err != nil {
		return nil, err
	}
	cache, err := middleware.New(g.(guarded).Guard, middleware.Config{})
	if err != nil {
		_ = g.Close() // nobody has used it
		return nil, err
	}
	return &site{handler: routed(s.origin, cache.Handler), invalidate: cache.Invalidate, close: g.Close}, nil
}

// stampede is go-chi/stampede 0.6.0 with the settings of its README, and room for all pages. Its cache is the instance's own. It
// offers nothing to a writer.
var stampede = CacheLibrary{
	Name: "go-chi/stampede 0.6.0", Kind: Local, Promise: OnePerProcess,
	Open: func(s Setup) (Cache, error) {
		return &site{handler: routed(s.origin, chistampede.Handler(max(2*s.Entries, 512), s.TTL))}, nil
	},
}

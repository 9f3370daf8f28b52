package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chistampede "github.com/go-chi/stampede"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

// pages is one instance of a service: an origin behind a way to cache its pages. A fleet's instances share the name.
type pages struct {
	name string
	open func(b *testing.B, fleet string, origin http.HandlerFunc, freshFor time.Duration) http.Handler
}

var (
	barePages   = pages{"bare", openBarePages}
	guardPages  = pages{"cacheguard", openGuardPages}
	localPages  = pages{"cacheguard, local tier", openLocalPages}
	handPages   = pages{"by hand", openHandPages}
	rivalPages  = pages{"go-chi/stampede v0.6.0", openRivalPages}
	cachedPages = []pages{guardPages, localPages, handPages, rivalPages}
)

func openBarePages(_ *testing.B, _ string, origin http.HandlerFunc, _ time.Duration) http.Handler {
	return routed(origin)
}

func openGuardPages(b *testing.B, fleet string, origin http.HandlerFunc, _ time.Duration) http.Handler {
	return openMiddleware(b, fleet, origin, cacheguard.LocalConfig{})
}

func openLocalPages(b *testing.B, fleet string, origin http.HandlerFunc, _ time.Duration) http.Handler {
	return openMiddleware(b, fleet, origin, cacheguard.LocalConfig{MaxBytes: 64 << 20, TTL: ttl})
}

func openMiddleware(b *testing.B, fleet string, origin http.HandlerFunc, local cacheguard.LocalConfig) http.Handler {
	b.Helper()
	guard, err := cacheguard.New(client(b), cacheguard.Config{Prefix: fleet, Local: local})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = guard.Close() }) // always nil
	if err := guard.SelfCheck(b.Context()); err != nil {
		b.Fatal(err)
	}
	cache, err := middleware.New(guard, middleware.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return routed(origin, cache.Handler)
}

// openRivalPages is as its README has it. Its cache is the instance's own.
func openRivalPages(_ *testing.B, _ string, origin http.HandlerFunc, freshFor time.Duration) http.Handler {
	return routed(origin, chistampede.Handler(512, freshFor))
}

// openHandPages is GET, else the origin and SET. Of the header it keeps nothing.
func openHandPages(b *testing.B, fleet string, origin http.HandlerFunc, freshFor time.Duration) http.Handler {
	rdb := client(b)
	return routed(func(w http.ResponseWriter, r *http.Request) {
		key := fleet + r.URL.Path
		page, err := rdb.Get(r.Context(), key).Bytes()
		if errors.Is(err, redis.Nil) {
			made := httptest.NewRecorder()
			origin(made, r)
			page = made.Body.Bytes()
			err = rdb.Set(r.Context(), key, page, freshFor).Err()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(page)
	})
}

func routed(origin http.HandlerFunc, through ...func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(through...)
	r.Get("/pages/{id}", origin)
	return r
}

// origin is the handler whose pages are cached. It takes a while, if it is told to.
type origin struct {
	body     []byte
	freshFor time.Duration
	takes    time.Duration
	calls    atomic.Int64
	made     atomic.Int64 // when the first call of the crowd had ended, in nanoseconds
	began    time.Time
}

func newOrigin(freshFor time.Duration) *origin {
	return &origin{body: bytes.Repeat([]byte("x"), valueSize), freshFor: freshFor}
}

func (o *origin) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	o.calls.Add(1)
	time.Sleep(o.takes)
	o.made.CompareAndSwap(0, int64(time.Since(o.began)))
	w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", o.freshFor/time.Second))
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write(o.body)
}

// reply is a client that keeps nothing but the size.
type reply struct {
	header http.Header
	status int
	size   int
}

func (r *reply) Header() http.Header { return r.header }
func (r *reply) WriteHeader(s int)   { r.status = s }
func (r *reply) Write(p []byte) (int, error) {
	r.size += len(p)
	return len(p), nil
}

// serve asks a handler for a page, and returns an error unless it gets one.
func serve(h http.Handler, request *http.Request) error {
	got := &reply{header: make(http.Header)}
	h.ServeHTTP(got, request)
	if got.status > http.StatusOK || got.size != valueSize {
		return fmt.Errorf("%s: status %d, %d bytes", request.URL, got.status, got.size)
	}
	return nil
}

func pageRequest(ctx context.Context, i int) *http.Request {
	return httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("/pages/%d", i), http.NoBody)
}

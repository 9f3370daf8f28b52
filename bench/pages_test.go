package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/middleware"
)

// BenchmarkPage has one caller after the other ask for one page, or for a thousand in turn, that the local tier or Redis has.
func BenchmarkPage(b *testing.B) {
	server, body := redistest.Start(b), make([]byte, valueSize)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = w.Write(body) // it costs nothing, and cannot fail
	})
	for from, cfg := range map[string]cacheguard.Config{
		"tier": {Local: cacheguard.LocalConfig{TTL: ttl, MaxEntries: 100_000}}, "redis": {},
	} {
		g := newGuard(b, server.Client(b), cfg)
		cache, err := middleware.New(g.Guard, middleware.Config{Space: from})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(from+"/1", func(b *testing.B) { askForPages(b, cache.Handler(handler), 1) })
		b.Run(from+"/1000", func(b *testing.B) { askForPages(b, cache.Handler(handler), 1000) })
	}
	b.Run("bare handler", func(b *testing.B) { askForPages(b, handler, 1000) })
}

func askForPages(b *testing.B, handler http.Handler, n int) {
	b.Helper()
	var client visitor // the same for all, so that it costs nothing
	ask := func(r *http.Request) {
		client.header = make(http.Header)
		handler.ServeHTTP(&client, r)
	}
	requests := make([]*http.Request, n)
	for i := range requests {
		requests[i] = httptest.NewRequestWithContext(b.Context(), http.MethodGet, fmt.Sprintf("/page/%d?a=1", i), http.NoBody)
		for range 2 { // then it is in the tier, too
			ask(requests[i])
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ask(requests[i%n])
	}
}

// page asks for one that is there, or that may not be.
func page(cfg cacheguard.Config, method string) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		cache, err := middleware.New(countedGuard(t, rdb, cfg), middleware.Config{})
		if err != nil {
			t.Fatal(err)
		}
		h := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=3600")
			_, _ = w.Write([]byte("page"))
		}))
		r, err := http.NewRequestWithContext(context.Background(), method, "/"+rand.Text(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		get := func() error {
			got := visitor{header: make(http.Header)}
			h.ServeHTTP(&got, r)
			if got.bytes == 0 || got.status > http.StatusOK {
				return fmt.Errorf("status %d, %d bytes", got.status, got.bytes)
			}
			return nil
		}
		for range 2 {
			if err := get(); err != nil {
				t.Fatal(err)
			}
		}
		return get
	}
}

// visitor keeps nothing of a page.
type visitor struct {
	header        http.Header
	status, bytes int
}

func (v *visitor) Header() http.Header { return v.header }
func (v *visitor) WriteHeader(s int)   { v.status = s }
func (v *visitor) Write(p []byte) (int, error) {
	v.bytes += len(p)
	return len(p), nil
}

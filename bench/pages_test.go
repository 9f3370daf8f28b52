package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

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

package middleware

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// sink is a client that throws responses away.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}

// A hit with the local tier, beside the bare handler; then 64 callers at a time without it, beside a handler that reads Redis
// by hand.
func BenchmarkHit(b *testing.B) {
	body := strings.Repeat("x", 1024)
	handler := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(body))
	}
	cached := func(b *testing.B, cfg cacheguard.Config, through func(*chi.Mux)) http.Handler {
		cfg.Prefix = "bench-" + rand.Text()
		guard, err := cacheguard.New(shared.Client(b), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = guard.Close() }) // always nil
		cache, err := New(guard, Config{})
		if err != nil {
			b.Fatal(err)
		}
		r := chi.NewRouter()
		r.Use(cache.Handler)
		through(r)
		return r
	}
	route := func(r *chi.Mux) { r.Get("/page", handler) }
	bare := chi.NewRouter()
	route(bare)
	rdb := shared.Client(b, func(o *redis.Options) { o.PoolSize = 100 })
	rdb.Set(b.Context(), "by-hand", body, 0)
	byHand := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, err := rdb.Get(r.Context(), "by-hand").Bytes()
		if err != nil {
			b.Error(err)
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(page)
	})
	request := httptest.NewRequest(http.MethodGet, "/page", nil)
	local := cacheguard.Config{Local: cacheguard.LocalConfig{MaxEntries: 1000, TTL: 3600e9}}
	for name, h := range map[string]http.Handler{"bare": bare, "local": cached(b, local, route), "redis": cached(b, cacheguard.Config{}, route), "byhand": byHand} {
		b.Run("one/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(&sink{make(http.Header)}, request)
			}
		})
		b.Run("many/"+name, func(b *testing.B) {
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					h.ServeHTTP(&sink{make(http.Header)}, request)
				}
			})
		})
	}
}

package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

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

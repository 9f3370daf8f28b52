package middleware

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

// Soft invalidations on every instance store the page again, and beside them the writer ends one of its names: after that nobody gets the old page.
func TestBesideSoftInvalidationsNobodyGetsWhatAWriteHasEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*cacheguard.Guard, *Cache) error{
		"a tag of the handler": func(g *cacheguard.Guard, _ *Cache) error { return g.InvalidateTags(t.Context(), "t") },
		"a Cache-Tag":          func(_ *cacheguard.Guard, c *Cache) error { return c.InvalidateTags(t.Context(), "ct") },
		"a prefix":             func(_ *cacheguard.Guard, c *Cache) error { return c.InvalidatePrefix(t.Context(), "/x") },
		"an intent": func(g *cacheguard.Guard, _ *Cache) error {
			in, err := g.Intend(t.Context(), cacheguard.Changes{Tags: []string{"t"}})
			if err != nil {
				return err
			}
			return in.Done(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var row, least atomic.Int64
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				cacheguard.SetTags(r.Context(), "t")
				w.Header().Set("Cache-Tag", "ct")
				w.Header().Set("Cache-Control", "max-age=3600")
				v := row.Load()
				pause(2 * time.Millisecond)
				_, _ = fmt.Fprint(w, v)
			})
			f := newFleet(t, 3, Config{StaleWhile: time.Minute, Prefixes: []string{"/x"}}, handler)
			page := func() *http.Request {
				return httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/x", http.NoBody)
			}
			var over atomic.Bool
			var all sync.WaitGroup
			for i, cache := range f.caches {
				serves := cache.Handler(handler)
				for range 7 {
					all.Go(func() {
						for !over.Load() {
							least, w := least.Load(), httptest.NewRecorder()
							serves.ServeHTTP(w, page())
							if v, err := strconv.ParseInt(w.Body.String(), 10, 64); err != nil || v < least {
								t.Errorf("instance %d: %q, %v, want %d at least: %s", i, w.Body, err, least, w.Header().Get("Cache-Status"))
							}
							pause(rand.N(2 * time.Millisecond))
						}
					})
				}
				all.Go(func() {
					for !over.Load() {
						expect.ErrorIs(t, cache.Invalidate(Soft(t.Context()), page()))
						pause(rand.N(5 * time.Millisecond))
					}
				})
			}
			for range expect.Samples(60, 600) {
				v := row.Add(1)
				expect.ErrorIs(t, end(f.guards[0], f.caches[0]))
				least.Store(v)
				pause(rand.N(20 * time.Millisecond))
			}
			over.Store(true)
			all.Wait()
		})
	}
}

// pause lets others go on.
func pause(d time.Duration) { <-time.After(d) }

package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware"
)

// The variant that was made first has the page's own record, by which the others know the page.
func TestVariantsEndEachByItself(t *testing.T) {
	t.Parallel()
	const variants = 10
	for name, control := range map[string]string{
		"a page that ends":           "max-age=1",
		"a page that is not stored":  "private",
		"a page that is not kept":    "max-age=1, must-revalidate",
		"a page that is made longer": "max-age=1, stale-while-revalidate=3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := cacheguardtest.New(t, cacheguard.Config{})
			var calls atomic.Int64
			pages, err := middleware.New(env.Guard, middleware.Config{KeepFor: -1, StaleIfError: -1, PassFor: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			handler := pages.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				device := r.Header.Get("X-Device")
				w.Header().Set("Vary", "X-Device")
				w.Header().Set("Cache-Control", "max-age=60")
				if device == "0" {
					w.Header().Set("Cache-Control", control)
				}
				_, _ = fmt.Fprint(w, device)
			}))
			get := func(device int) string {
				r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), httptest.NewRecorder()
				r.Header.Set("X-Device", fmt.Sprint(device))
				handler.ServeHTTP(w, r)
				env.Settle()
				return w.Body.String()
			}
			for device := range variants + 1 {
				get(device)
			}
			for range 5 {
				env.Advance(8 * time.Second)
				before := calls.Load()
				for device := 1; device <= variants; device++ {
					expect.Equal(t, "body", get(device), fmt.Sprint(device))
				}
				expect.Equal(t, "calls for fresh variants", calls.Load()-before, 0)
				expect.Equal(t, "the first", get(0), "0")
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
			expect.ErrorIs(t, pages.Invalidate(t.Context(), r))
			before := calls.Load()
			for device := 1; device <= variants; device++ {
				get(device)
			}
			expect.Equal(t, "calls after Invalidate", calls.Load()-before, variants)
		})
	}
}

// A tag that a handler gives with the context of its request is a tag of the page, in each of its variants.
func TestPagesHaveTheTagsThatTheirHandlersSet(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	pages, err := middleware.New(env.Guard, middleware.Config{})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	handler := pages.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		cacheguard.SetTags(r.Context(), "product:42")
		w.Header().Set("Vary", "X-Device")
		w.Header().Set("Cache-Control", "max-age=60")
	}))
	get := func() int {
		for _, device := range []string{"", "a", "b"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
			r.Header.Set("X-Device", device)
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		return calls
	}
	_ = get() + get() // a tag that is new may need a second load
	before := calls
	expect.Equal(t, "calls of what is cached", get(), before)
	expect.Equal(t, "InvalidateTags", env.Guard.InvalidateTags(t.Context(), "product:42"), nil)
	expect.Equal(t, "calls after that", get(), before+3)
}

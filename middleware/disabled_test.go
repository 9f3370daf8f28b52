package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestPagesAreMadeWithoutACacheWhenTheGuardIsDisabled(t *testing.T) {
	t.Parallel()
	guard, err := cacheguard.New(nil, cacheguard.Config{Disabled: true})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	cache, err := New(guard, Config{})
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	handler := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		made++
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = fmt.Fprint(w, "page ", made)
	}))
	for n := 1; n <= 3; n++ {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		expect.Equal(t, "status", w.Code, http.StatusOK)
		expect.Equal(t, "body", w.Body.String(), fmt.Sprint("page ", n))
		t.Log(w.Header().Get("Cache-Status"))
	}
	expect.ErrorIs(t, cache.Invalidate(t.Context(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)), nil)
	expect.ErrorIs(t, cache.InvalidateTags(t.Context(), "tag"), nil)
}

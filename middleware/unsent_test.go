package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware"
)

func TestAPostWhoseInvalidationCannotBeSentSaysSo(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	var last middleware.Response
	cache, err := middleware.New(env.Guard, middleware.Config{OnResponse: func(_ *http.Request, res middleware.Response) { last = res }})
	if err != nil {
		t.Fatal(err)
	}
	handler := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Group-Invalidation", `"a"`)
	}))
	for _, c := range []struct {
		outage bool
		status string
	}{{false, "cacheguard; fwd=method"}, {true, "cacheguard; fwd=method; detail=not-invalidated"}} {
		env.Outage(c.outage)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
		expect.Equal(t, "status", w.Header().Get("Cache-Status"), c.status)
		expect.Equal(t, "to OnResponse", last.NotInvalidated != nil, c.outage)
	}
	env.Outage(false)
}

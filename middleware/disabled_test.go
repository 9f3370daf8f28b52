package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
		expect.Equal(t, "the reason", strings.HasSuffix(w.Header().Get("Cache-Status"), "; detail=bypass"), true)
	}
	expect.ErrorIs(t, cache.Invalidate(t.Context(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)), nil)
	expect.ErrorIs(t, cache.InvalidateTags(t.Context(), "tag"), nil)
}

// RFC 9111 section 5.2.1.7: a request for a stored response only does not cause a call, whatever else it wants.
func TestARequestForAStoredResponseOnlyNeverReachesTheHandlerOfAPageInSlices(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Etag", `"1"`)
		http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader(strings.Repeat("x", 3000)))
	})
	f := newFleet(t, 1, Config{MaxBody: 1000, SliceBytes: 1000}, p)
	f.warm("/film")
	f.warm("/film")
	calls := p.calls.Load()
	several := f.get("/film", "Cache-Control: only-if-cached", "Range: bytes=0-1,5-6")
	expect.Equal(t, "several ranges", several.StatusCode, http.StatusGatewayTimeout)

	whole, err := New(f.guards[0], Config{})
	if err != nil {
		t.Fatal(err)
	}
	f.front(whole.Handler(p))
	expect.Equal(t, "an instance without slices", f.get("/film", "Cache-Control: only-if-cached").StatusCode, http.StatusGatewayTimeout)
	expect.Equal(t, "calls", p.calls.Load(), calls)
}

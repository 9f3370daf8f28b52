package middleware

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

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

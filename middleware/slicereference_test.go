package middleware

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// The table of what RFC 9111 forbids holds for slices too. The first request of a pair is sent twice, for a range, and the second once. If
// the handler was not called for that, a slice was reused.
func TestNoSliceIsReusedThatRFC9111Forbids(t *testing.T) {
	t.Parallel()
	cache := newCache(t, Config{MaxBody: 20, SliceBytes: 10})
	bits := func(n int) (b uint32) {
		for range mathrand.IntN(4) {
			b |= 1 << mathrand.IntN(n)
		}
		return b
	}
	reused, samples := 0, expect.Samples(300, 1000)
	for range samples {
		ask1, reply := picked(askLines, bits(len(askLines))), picked(replyLines, 1|bits(len(replyLines)))
		if compareSlices(t, cache, ask1, reply, picked(askLines, bits(len(askLines)))) {
			reused++
		}
	}
	if reused < samples/15 {
		t.Errorf("%d slices were reused", reused)
	}
}

func compareSlices(t *testing.T, cache *Cache, ask1, reply, ask2 lines) (reused bool) {
	t.Helper()
	path, body := "/"+rand.Text(), rand.Text()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if len(reply.of("ETag")) == 0 {
			w.Header().Set("Etag", `"a"`)
		}
		says("", reply...)(headerOnly{w}, r)
		modified, _ := http.ParseTime(w.Header().Get("Last-Modified"))
		r.Header.Del("If-Match") // some of the requests have one
		http.ServeContent(w, r, "", modified, strings.NewReader(body))
	})
	send := func(ask lines) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Range", "bytes=12-17")
		for _, line := range ask {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Add(name, value)
		}
		w := httptest.NewRecorder()
		cache.Handler(p).ServeHTTP(w, r)
		if w.Code != http.StatusPartialContent || w.Body.String() != body[12:18] {
			t.Fatalf("%q of %q: %d %q", ask, reply, w.Code, w.Body)
		}
	}
	send(ask1)
	send(ask1)
	calls := p.calls.Load()
	send(ask2)
	if reused = p.calls.Load() == calls; !reused {
		return false
	}
	for _, row := range forbidden {
		if row.when(ask1, reply, ask2) {
			t.Errorf("reused against %q: first %q, reply %q, second %q", row.rule, ask1, reply, ask2)
		}
	}
	return true
}

// headerOnly takes only the header of an answer.
type headerOnly struct{ http.ResponseWriter }

func (headerOnly) WriteHeader(int)             {}
func (headerOnly) Write(b []byte) (int, error) { return len(b), nil }

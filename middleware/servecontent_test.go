package middleware

import (
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Random requests get the same answer from a page in slices as from the bare handler.
func TestAnswersFromSlicesAreThoseOfServeContent(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{
		"ETag": "X-A: 1", "Last-Modified": "Last-Modified: Mon, 02 Jan 2006 15:04:05 GMT", "encoded": "Content-Encoding: br",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFilm(header, "Content-Length: 1000")
			f := newFleet(t, 1, inSlices, p)
			bare := httptest.NewServer(p)
			t.Cleanup(bare.Close)
			f.urls = append(f.urls, bare.URL)
			for range expect.Samples(100, 500) {
				method, lines := randomPart()
				got, want := f.do(0, method, "/", lines...), f.do(1, method, "/", lines...)
				if got.StatusCode != want.StatusCode || got.body != want.body {
					t.Fatalf("%s %q: %d %q, want %d %q", method, lines, got.StatusCode, got.body, want.StatusCode, want.body)
				}
				for _, name := range []string{"Content-Range", "Content-Length", "Content-Type", "Content-Encoding", "Etag", "Last-Modified", "Accept-Ranges", "Cache-Control", "X-A"} {
					if name == "Accept-Ranges" && got.StatusCode != http.StatusOK && got.StatusCode != http.StatusPartialContent {
						continue // ServeContent does not get so far
					}
					if g, w := got.Header.Get(name), want.Header.Get(name); g != w {
						t.Fatalf("%s %q: %s %q, want %q", method, lines, name, g, w)
					}
				}
			}
			if n := f.slices(); n > 10 {
				t.Errorf("%d slices are stored", n)
			}
		})
	}
}

// randomPart is a random request for a part of a film.
func randomPart() (method string, lines []string) {
	number := func() string {
		if mathrand.IntN(8) == 0 {
			return ""
		}
		return fmt.Sprint(mathrand.IntN(1100))
	}
	if mathrand.IntN(10) > 0 {
		lines = append(lines, "Range: bytes="+number()+"-"+number())
	}
	switch mathrand.IntN(16) {
	case 0:
		lines = append(lines, `If-Range: "a"`)
	case 1:
		lines = append(lines, `If-Range: "b"`)
	case 2:
		lines = append(lines, "If-Range: Mon, 02 Jan 2006 15:04:05 GMT")
	case 3:
		lines = append(lines, `If-None-Match: "b"`)
	case 4:
		lines = append(lines, `If-None-Match: "a"`)
	case 5:
		lines = append(lines, `If-Match: "a"`)
	}
	return http.MethodGet, lines
}

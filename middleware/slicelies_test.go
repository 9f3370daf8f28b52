package middleware

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware/internal/sliced"
)

// part answers a request for bytes 100 to 199 of a film correctly, except for the fields given.
func part(w http.ResponseWriter, status int, body string, header ...string) {
	h := w.Header()
	h.Set("Cache-Control", "max-age=60")
	h.Set("Content-Type", "video/mp4")
	h.Set("Etag", `"a"`)
	h.Set("Content-Range", "bytes 100-199/1000")
	for _, line := range header {
		name, value, _ := strings.Cut(line, ":")
		h.Del(name)
		for v := range strings.SplitSeq(value, "|") {
			if v != "" {
				h.Add(name, strings.TrimSpace(v))
			}
		}
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // too much is refused
}

// An answer that is not exactly the requested slice is neither stored nor sent. The handler answers for the page from then on.
func TestAPartThatIsNotTheRequestedSliceIsNeverStored(t *testing.T) {
	t.Parallel()
	right := filmed("a")[100:200]
	for name, lie := range map[string]http.HandlerFunc{
		"a later part":     lies(right, "Content-Range: bytes 101-200/1000"),
		"too long":         lies(right, "Content-Range: bytes 100-200/1000"),
		"too short":        lies(right, "Content-Range: bytes 100-198/1000"),
		"overlapping":      lies(right, "Content-Range: bytes 50-149/1000"),
		"another length":   lies(right, "Content-Range: bytes 100-199/2000"),
		"unknown length":   lies(right, "Content-Range: bytes 100-199/*"),
		"another unit":     lies(right, "Content-Range: items 100-199/1000"),
		"two ranges":       lies(right, "Content-Range: bytes 100-199/1000|bytes 100-199/1000"),
		"no range":         lies(right, "Content-Range:"),
		"several parts":    lies(right, "Content-Type: multipart/byteranges; boundary=a"),
		"no validator":     lies(right, "Etag:"),
		"a weak validator": lies(right, `Etag: W/"a"`),
		"another page":     lies(right, `Etag: "b"`),
		"private":          lies(right, "Cache-Control: private, max-age=60"),
		"no-cache":         lies(right, "Cache-Control: no-cache"),
		"a cookie":         lies(right, "Set-Cookie: a=b"),
		"another Vary":     lies(right, "Vary: X-A"),
		"another encoding": lies(right, "Content-Encoding: gzip"),
		"a longer body":    lies(right + "0"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") == "bytes=100-199" {
					p.calls.Add(1)
					lie(w, r)
					return
				}
				p.ServeHTTP(w, r)
			}))
			expect.Equal(t, "body", f.get("/", "Range: bytes=120-139").body, filmed("a")[120:140])
			f.stored()
			expect.Equal(t, "slices", f.slices(), 0)
			expect.Equal(t, "what is stored", f.marked("/").Why(), string(sliced.NoRanges))
			if n := p.calls.Load(); n > 6 {
				t.Errorf("%d calls", n)
			}
			f.get("/", "Range: bytes=120-139")
			if n := p.calls.Load(); n > 7 {
				t.Errorf("%d calls, as if nothing had been learnt", n)
			}
		})
	}
}

func lies(body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { part(w, http.StatusPartialContent, body, header...) }
}

// A part that ended early may be complete the next time.
func TestAPartThatEndsEarlyIsNotStored(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(http.ResponseWriter){
		"a byte is missing": func(w http.ResponseWriter) { part(w, http.StatusPartialContent, filmed("a")[100:199]) },
		"an error ends it": func(w http.ResponseWriter) {
			part(w, http.StatusPartialContent, filmed("a")[100:193])
			http.Error(w, "failed", http.StatusInternalServerError) // as many bytes as are missing
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			var broken atomic.Bool
			broken.Store(true)
			f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") == "bytes=100-199" && broken.Load() {
					end(w)
					return
				}
				p.ServeHTTP(w, r)
			}))
			a := f.get("/", "Range: bytes=120-139")
			expect.Equal(t, "body", a.body, filmed("a")[120:140])
			expect.Equal(t, "Cache-Status", a.cacheStatus(), "cacheguard; fwd=partial")
			f.stored()
			expect.Equal(t, "slices", f.slices(), 0)
			broken.Store(false)
			f.warm("/", "Range: bytes=120-139")
			expect.Equal(t, "slices", f.slices(), 1)
		})
	}
}

// A handler that answers a range with the whole page is stopped, and not asked for a slice again.
func TestAHandlerThatIgnoresRangesIsRemembered(t *testing.T) {
	t.Parallel()
	const chunks = 1000
	var calls, written atomic.Int64
	p := func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Type", "video/mp4")
		w.Header().Set("Etag", `"a"`)
		w.Header().Set("Content-Length", strconv.Itoa(100*chunks))
		for range chunks {
			if _, err := io.WriteString(w, filmed("a")[:100]); err != nil {
				return
			}
			if r.Header.Get("If-Range") != "" {
				written.Add(1)
			}
		}
	}
	f := newFleet(t, 1, inSlices, http.HandlerFunc(p))
	a := f.get("/", "Range: bytes=120-139")
	expect.Equal(t, "status", a.StatusCode, http.StatusOK)
	expect.Equal(t, "length", len(a.body), 100*chunks)
	expect.Equal(t, "written by the call for a slice", written.Load(), 0)
	expect.Equal(t, "calls", calls.Load(), 4) // for the whole, for a slice, for the whole to be passed on, for the client's range
	f.stored()
	expect.Equal(t, "what is stored", f.marked("/").Why(), string(sliced.NoRanges))
	a = f.get("/")
	expect.Equal(t, "length", len(a.body), 100*chunks)
	expect.Equal(t, "Cache-Status", a.cacheStatus(), "cacheguard; fwd=uri-miss; detail=no-ranges")
	expect.Equal(t, "calls", calls.Load(), 5)
}

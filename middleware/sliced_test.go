package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/middleware/internal/record"
)

func TestARangeOfAPageThatIsTooLargeIsPutTogetherFromSlices(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 2, inSlices, p)
	a := f.get("/", "Range: bytes=150-349")
	expect.Equal(t, "status", a.StatusCode, http.StatusPartialContent)
	expect.Equal(t, "body", a.body, filmed("a")[150:350])
	expect.Equal(t, "Content-Range", a.Header.Get("Content-Range"), "bytes 150-349/1000")
	expect.Equal(t, "Cache-Status", a.withoutTTL(), "cacheguard; fwd=uri-miss; fwd-status=200; stored")
	expect.Equal(t, "asked", p.asked(), " 100-199 200-299 300-399")
	for i := range 2 {
		a = f.do(i, http.MethodGet, "/", "Range: bytes=399-399")
		expect.Equal(t, "body", a.body, filmed("a")[399:400])
		if s := a.cacheStatus(); !strings.HasPrefix(s, "cacheguard; hit; ttl=") {
			t.Error(s)
		}
	}
	expect.Equal(t, "asked for what is there", p.asked(), "")
	a = f.get("/", "Range: bytes=-1")
	expect.Equal(t, "Cache-Status", a.withoutTTL(), "cacheguard; fwd=partial; fwd-status=206; stored")
	expect.Equal(t, "asked", p.asked(), "900-999")
	expect.Equal(t, "hits", f.count(Hit), 2)
	expect.Equal(t, "loaded", f.count(Loaded), 2)
}

func TestAWholePageIsCompletedFromSlices(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 2, inSlices, p)
	expect.Equal(t, "the first", f.get("/").body, filmed("a"))
	f.stored()
	f.get("/", "Range: bytes=500-699")
	expect.Equal(t, "asked", p.asked(), " 500-599 600-699")
	a := f.do(1, http.MethodGet, "/")
	expect.Equal(t, "status", a.StatusCode, http.StatusOK)
	expect.Equal(t, "body", a.body, filmed("a"))
	expect.Equal(t, "length", a.ContentLength, 1000)
	expect.Equal(t, "asked", p.asked(), "0-99 100-199 200-299 300-399 400-499 700-799 800-899 900-999")
	expect.Equal(t, "again", f.get("/").body, filmed("a"))
	expect.Equal(t, "asked", p.asked(), "")
}

func TestRequestsThatNeedNoSliceLoadNone(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 1, inSlices, p)
	a := f.raw(t, "HEAD / HTTP/1.1", "Range: bytes=0-1")
	expect.Equal(t, "HEAD", a.StatusCode, http.StatusOK)
	expect.Equal(t, "length", a.Header.Get("Content-Length"), "1000")
	expect.Equal(t, "age", a.Header.Get("Age"), "0")
	expect.Equal(t, "asked", p.asked(), "")
	a = f.get("/", `If-None-Match: "a"`)
	expect.Equal(t, "condition", a.StatusCode, http.StatusNotModified)
	a = f.get("/", "Range: bytes=1000-")
	expect.Equal(t, "not satisfiable", a.StatusCode, http.StatusRequestedRangeNotSatisfiable)
	expect.Equal(t, "Content-Range", a.Header.Get("Content-Range"), "bytes */1000")
	a = f.get("/", "Range: bytes=0-1", "Cache-Control: only-if-cached")
	expect.Equal(t, "only if cached", a.StatusCode, http.StatusGatewayTimeout)
	expect.Equal(t, "calls", p.calls.Load(), 1)
	expect.Equal(t, "a unit that nobody knows", f.get("/", "Range: items=1-2").StatusCode, http.StatusOK)
	a = f.get("/", "Range: bytes=0-1,500-501")
	expect.Equal(t, "several ranges", a.StatusCode, http.StatusPartialContent)
	expect.Equal(t, "Cache-Status", a.cacheStatus(), "cacheguard; fwd=bypass; detail=ranges")
}

func TestAThousandRequestsForASliceCallTheHandlerOnce(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 1, inSlices, p)
	f.do(0, http.MethodHead, "/")
	<-p.begun
	f.stored()
	p.held()
	h := f.caches[0].Handler(p)
	bodies := make(chan string, 1000)
	for i := range 1000 {
		go func() { // owner: the test; ends with the response; joined by receiving
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Host = host
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", 200+i%50, 250+i%50))
			h.ServeHTTP(w, r)
			if want := filmed("a")[200+i%50 : 251+i%50]; w.Body.String() != want {
				bodies <- fmt.Sprint(i, w.Code, w.Body)
				return
			}
			bodies <- ""
		}()
	}
	f.joins(999)
	close(p.hold)
	for range 1000 {
		if wrong := <-bodies; wrong != "" {
			t.Error(wrong)
		}
	}
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

func TestSlicesAreSelectedAsTheirPageIs(t *testing.T) {
	t.Parallel()
	p := newFilm("Vary: X-A")
	f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.change(r.Header.Get("X-A"))
		p.ServeHTTP(w, r)
	}))
	for range 2 {
		for _, edit := range []string{"b", "c"} {
			expect.Equal(t, "body", f.get("/", "X-A: "+edit, "Range: bytes=0-9").body, filmed(edit)[:10])
		}
	}
	expect.Equal(t, "asked", p.asked(), " 0-99  0-99")
}

func TestOnlyPagesThatCanBePutTogetherAreSliced(t *testing.T) {
	t.Parallel()
	old := "Last-Modified: " + time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	const recent = "Last-Modified: now"
	for name, c := range map[string]struct {
		sliced bool
		header []string
	}{
		"strong ETag":            {true, nil},
		"strong Last-Modified":   {true, []string{"Etag:", old}},
		"recent Last-Modified":   {false, []string{"Etag:", recent}},
		"weak ETag":              {false, []string{`Etag: W/"a"`, old}},
		"no validator":           {false, []string{"Etag:"}},
		"no lifetime":            {false, []string{"Cache-Control:"}},
		"private":                {false, []string{"Cache-Control: private, max-age=60"}},
		"a cookie":               {false, []string{"Set-Cookie: a=b"}},
		"another for each range": {false, []string{"Vary: Range"}},
		"says it has no ranges":  {false, []string{"X-Ranges: none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				now := "Last-Modified: " + time.Now().UTC().Format(http.TimeFormat)
				header := slices.Clone(c.header)
				for i, line := range header {
					if line == recent {
						header[i] = now
					}
				}
				p := newFilm(header...)
				p.serve(&without{ResponseWriter: w}, r)
			}))
			expect.Equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
			kind := record.PassThrough
			if c.sliced {
				kind = record.Sliced
			}
			redistest.Await(t, "the record", func() bool {
				rec := f.marked("/")
				return rec != nil && rec.Kind == kind
			})
			f.stored()
			expect.Equal(t, "slices", f.slices() > 0, c.sliced)
		})
	}
}

// without removes empty fields.
type without struct{ http.ResponseWriter }

func (w *without) WriteHeader(status int) {
	for name, values := range w.Header() {
		if name == "X-Ranges" {
			w.Header()["Accept-Ranges"] = values
		}
		if len(values) == 1 && values[0] == "" {
			w.Header().Del(name)
		}
	}
	w.ResponseWriter.WriteHeader(status)
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

package middleware

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// fifty sends fifty requests with these lines at once, for a page that is not stored.
func fifty(t *testing.T, f *fleet, p *page, lines ...string) (replies []answer) {
	t.Helper()
	p.held()
	got := make(chan answer, 50)
	for range 50 {
		go func() { got <- f.raw(t, lines...) }() // owner: the test; ends with the response; joined by receiving
	}
	<-p.begun
	f.joins(49)
	close(p.hold)
	for range 50 {
		replies = append(replies, <-got)
	}
	return replies
}

func TestFiftyPartsOfAPageAreMadeByOneCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines  []string
		status int
		body   string
	}{
		"ranges":            {[]string{"GET / HTTP/1.1", "Range: bytes=2-4"}, http.StatusPartialContent, "234"},
		"HEAD":              {[]string{"HEAD / HTTP/1.1"}, http.StatusOK, ""},
		"upgrade to h2c":    {[]string{"GET / HTTP/1.1", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"}, http.StatusOK, "0123456789"},
		"conditional range": {[]string{"GET / HTTP/1.1", "Range: bytes=2-4", `If-Range: "a"`}, http.StatusPartialContent, "234"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(says("0123456789", fresh, `ETag: "a"`))
			f := newFleet(t, 1, Config{}, p)
			for _, a := range fifty(t, f, p, c.lines...) {
				if a.StatusCode != c.status || a.body != c.body {
					t.Fatalf("%d %q", a.StatusCode, a.body)
				}
			}
			expect.Equal(t, "the page", f.get("/").body, "0123456789")
			expect.Equal(t, "calls", p.calls.Load(), 1)
		})
	}
}

func TestRequestsForRangesRefreshAStalePage(t *testing.T) {
	t.Parallel()
	p := newPage(says("0123456789", swr, "Age: 70"))
	f := newFleet(t, 1, Config{}, p)
	f.get("/")
	p.serve = says("abcdefghij", fresh)
	redistest.Await(t, "the page is new", func() bool { return f.get("/", "Range: bytes=2-4").body == "cde" })
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

// A client that wants three bytes of a page that cannot be stored does not get the whole page.
func TestTheHandlerAnswersForAPartOfAPageThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{"private": "private", "large": "max-age=60"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", header)
				w.Header().Set("X-Method", r.Method)
				if r.Header.Get("Range") != "" {
					w.WriteHeader(http.StatusPartialContent)
					says("234")(w, r)
					return
				}
				for range 100 {
					says("0123456789")(w, r)
				}
			})
			f := newFleet(t, 1, Config{MaxBody: 100}, p)
			for range 2 {
				a := f.get("/", "Range: bytes=2-4")
				expect.Equal(t, "status", a.StatusCode, http.StatusPartialContent)
				expect.Equal(t, "body", a.body, "234")
				expect.Equal(t, "method", f.do(0, http.MethodHead, "/").Header.Get("X-Method"), http.MethodHead)
			}
			expect.Equal(t, "calls", p.calls.Load(), 5)
		})
	}
}

func TestRangesOfAPageThatIsTooLargeDoNotWaitForOneAnother(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		http.ServeContent(w, r, "page.txt", time.Time{}, strings.NewReader(strings.Repeat("0123456789", 100)))
	})
	f := newFleet(t, 1, Config{MaxBody: 100}, p)
	expect.Equal(t, "the first", f.get("/", "Range: bytes=0-0").body, "0")
	<-p.begun // for the whole, in vain
	<-p.begun
	p.held()
	var ranges []<-chan answer
	for i := range 4 {
		ranges = append(ranges, f.async(0, "/", fmt.Sprintf("Range: bytes=%d-%d", i, i)))
	}
	for range ranges {
		<-p.begun // all of them, although none has ended
	}
	close(p.hold)
	for i, c := range ranges {
		a := <-c
		expect.Equal(t, "status", a.StatusCode, http.StatusPartialContent)
		expect.Equal(t, "body", a.body, strconv.Itoa(i))
	}
	expect.Equal(t, "calls", p.calls.Load(), 6)
}

func TestAHeadIsAnsweredFromTheWholePageBehindChi(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	router := chi.NewRouter()
	router.Use(f.caches[0].Handler)
	p := newPage(says("0123456789", fresh))
	router.Get("/page", p.ServeHTTP)
	f.front(router)
	for range 2 {
		a := f.do(0, http.MethodHead, "/page")
		expect.Equal(t, "status", a.StatusCode, http.StatusOK)
		expect.Equal(t, "Content-Length", a.Header.Get("Content-Length"), strconv.Itoa(10))
	}
	expect.Equal(t, "the page", f.get("/page").body, "0123456789")
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

// If a router in front has chosen the handler by the method HEAD, its response does not become the page.
func TestAHandlerChosenForHeadMakesNoPage(t *testing.T) {
	t.Parallel()
	head := says("", fresh)
	get := says("page", fresh)
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	cache := f.caches[0]
	mux := http.NewServeMux()
	mux.Handle("HEAD /mux", cache.Handler(head))
	mux.Handle("GET /mux", cache.Handler(get))
	router := chi.NewRouter()
	router.With(cache.Handler).Head("/chi", head)
	router.With(cache.Handler).Get("/chi", get)
	mux.Handle("/chi", router)
	mux.HandleFunc("/refused", func(w http.ResponseWriter, r *http.Request) {
		next := get
		if r.Method == http.MethodHead { // as a router does that refuses what it has no route for
			next = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
		}
		cache.Handler(next).ServeHTTP(w, r)
	})
	f.front(mux)
	for _, path := range []string{"/mux", "/chi", "/refused"} {
		f.do(0, http.MethodHead, path)
		expect.Equal(t, path, f.get(path).body, "page")
		if s := f.get(path).cacheStatus(); !strings.HasPrefix(s, "cacheguard; hit") {
			t.Errorf("%s: %s", path, s)
		}
	}
}

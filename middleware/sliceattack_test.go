package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redistest"
	"github.com/cacheguard/go/middleware/internal/record"
)

// A proxy behind drops what Connection names, also a field that the client has not sent and the cache adds.
func TestNoClientHasTheRangesOfSlicesDropped(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"Range", "If-Range", "close, range"} {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			origin := httptest.NewServer(newFilm())
			t.Cleanup(origin.Close)
			at, err := url.Parse(origin.URL)
			if err != nil {
				t.Fatal(err)
			}
			f := newFleet(t, 1, inSlices, httputil.NewSingleHostReverseProxy(at))
			f.do(0, http.MethodHead, "/")
			f.stored()
			equal(t, "body", f.raw(t, "GET / HTTP/1.1", "Connection: "+named).body, filmed("a"))
			f.stored()
			equal(t, "it is still sliced", f.marked("/").Kind == record.Sliced, true)
		})
	}
}

// What was invalidated while it was stale is not made good by a handler that says the same ETag.
func TestSlicesOfAStalePageAreMadeAnewAfterAnInvalidation(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{"stale": {"Age: 70"}, "to be validated": {"Cache-Control: max-age=60, no-cache"}, "fresh": nil} {
		for by, invalidate := range map[string]func(*fleet) error{
			"tag":    func(f *fleet) error { return f.caches[0].InvalidateTags(f.t.Context(), "films") },
			"prefix": func(f *fleet) error { return f.caches[0].InvalidatePrefix(f.t.Context(), "/films/") },
		} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				p := newFilm(append(lines, "Cache-Tag: films")...)
				f := newFleet(t, 1, inSlices, p)
				f.get("/films/a", "Range: bytes=0-149")
				f.stored()
				if err := invalidate(f); err != nil {
					t.Fatal(err)
				}
				p.asked()
				f.get("/films/a", "Range: bytes=0-149", "Cache-Control: no-cache")
				equal(t, "asked", p.asked(), " 0-99 100-199")
			})
		}
	}
}

// The same, of a page that is one record: a handler that fails does not bring it back.
func TestAPageThatATagInvalidatedDoesNotStandIn(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		says("old", "Cache-Control: max-age=60, stale-if-error=600", "Age: 70", "Cache-Tag: t1")(w, r)
	}))
	f.get("/")
	f.stored()
	fails.Store(true)
	equal(t, "it stands in", f.get("/").body, "old")
	f.stored()
	equal(t, "error", f.caches[0].InvalidateTags(t.Context(), "t1"), nil)
	equal(t, "status", f.get("/").StatusCode, http.StatusServiceUnavailable)
}

// An error is the client's who caused it, or passes.
func TestAnErrorForASliceIsNotRemembered(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 404, 408, 425, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Bad") != "" && r.Header.Get("Range") != "" {
					w.WriteHeader(status)
					return
				}
				p.ServeHTTP(w, r)
			}))
			equal(t, "status", f.get("/", "X-Bad: 1", "Range: bytes=0-9").StatusCode, status)
			f.stored()
			equal(t, "it is still sliced", f.marked("/").Kind == record.Sliced, true)
		})
	}
}

// Whose request a slice is made for, its refusal is; another who waits for the slice asks for himself.
func TestARefusalOfASliceIsForWhoCausedIt(t *testing.T) {
	t.Parallel()
	p := newFilm()
	begun, hold := make(chan struct{}, 1), make(chan struct{})
	f := newFleet(t, 2, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Bad") != "" && r.Header.Get("If-Range") != "" {
			begun <- struct{}{}
			<-hold
			w.WriteHeader(http.StatusForbidden)
			return
		}
		p.ServeHTTP(w, r)
	}))
	f.flushing()
	f.get("/", "Range: bytes=0-99")
	f.stored()
	bad := f.async(0, "/", "X-Bad: 1", "Range: bytes=100-199")
	<-begun
	good := f.async(0, "/") // it has had the first slice when it waits for the second
	f.awaitJoined(1)
	close(hold)
	<-bad
	equal(t, "body", (<-good).body, filmed("a"))
}

// A page whose terms have changed is loaded anew, and not given up.
func TestAPageWhoseTermsHaveChangedIsStillSliced(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"Cache-Control: max-age=60, public", "Cache-Control: max-age=60, must-revalidate", "Vary: X-A"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			f := newFleet(t, 1, inSlices, p)
			f.do(0, http.MethodHead, "/")
			f.stored()
			p.mu.Lock()
			p.header = []string{line}
			p.mu.Unlock()
			equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
			f.stored()
			equal(t, "it is still sliced", f.marked("/").Kind == record.Sliced, true)
		})
	}
}

// A handler that renews the session of one client does not take the page from the others.
func TestACookieForOneClientLeavesThePageInSlices(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" {
			w.Header().Set("Set-Cookie", "session=renewed")
		}
		p.ServeHTTP(w, r)
	}))
	f.do(0, http.MethodHead, "/")
	f.stored()
	a := f.get("/", "Cookie: session=old", "Range: bytes=0-9")
	equal(t, "body", a.body, filmed("a")[:10])
	equal(t, "cookie", a.Header.Get("Set-Cookie"), "session=renewed")
	f.stored()
	equal(t, "it is still sliced", f.marked("/").Kind == record.Sliced, true)
	equal(t, "cookie of another", f.get("/", "Range: bytes=0-9").Header.Get("Set-Cookie"), "")
}

// Whatever a page was marked for, it is sliced when that is over. (But no-ranges: only a slice could show that.)
func TestAPageThatWasMarkedIsSlicedWhenPassForIsOver(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"set-cookie", "private", "no-store", "flush"} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			f := newFleet(t, 1, inSlices, p)
			f.keep("/", record.Record{
				Kind: record.PassThrough, ID: "a", Location: "http://" + host + "/", Received: time.Now().Add(-11 * time.Second), Until: defaultPassFor,
				Header: []record.Pair{{Name: "Why", Value: why}},
			})
			redistest.Await(t, "it is sliced", func() bool {
				equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
				rec := f.marked("/")
				return rec != nil && rec.Kind == record.Sliced
			})
		})
	}
}

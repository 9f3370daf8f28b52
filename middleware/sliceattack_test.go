package middleware

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// A proxy behind drops the fields that Connection names, even if not the client but the cache has set them.
func TestNoClientCanMakeAProxyDropTheRangesOfSlices(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"Range", "If-Range", "close, range"} {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1, inSlices, proxy(t, newFilm()))
			f.learn("/")
			expect.Equal(t, "body", f.raw(t, "GET / HTTP/1.1", "Connection: "+named).body, filmed("a"))
			f.stored()
			expect.Equal(t, "it is still sliced", f.marked("/").Kind == record.Sliced, true)
		})
	}
}

// A stale page that was invalidated is not confirmed by a handler that still sends the same ETag.
func TestSlicesOfAStalePageAreMadeAnewAfterAnInvalidation(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{"stale": {"Age: 70"}, "to be validated": {"Cache-Control: max-age=60, no-cache"}, "fresh": nil} {
		for by, invalidate := range ways("by tag", "by prefix") {
			t.Run(name+" "+by, func(t *testing.T) {
				t.Parallel()
				p := newFilm(append(lines, "Cache-Tag: t1")...)
				f := newFleet(t, 1, inSlices, p)
				f.warm("/a/1", "Range: bytes=0-149")
				invalidate(f)
				p.asked()
				f.get("/a/1", "Range: bytes=0-149", "Cache-Control: no-cache")
				expect.Equal(t, "asked", p.asked(), " 0-99 100-199")
			})
		}
	}
}

// The same for a page that is one record: a failing handler does not bring it back.
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
	f.warm("/")
	fails.Store(true)
	expect.Equal(t, "it stands in", f.get("/").body, "old")
	f.stored()
	expect.Equal(t, "error", f.caches[0].InvalidateTags(t.Context(), "t1"), nil)
	expect.Equal(t, "status", f.get("/").StatusCode, http.StatusServiceUnavailable)
}

// An error concerns the client that caused it, or is temporary.
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
			expect.Equal(t, "status", f.get("/", "X-Bad: 1", "Range: bytes=0-9").StatusCode, status)
			f.stored()
			expect.Equal(t, "it is still sliced", f.marked("/").Kind == record.Sliced, true)
		})
	}
}

// Another request that waits for the same slice asks the handler itself.
func TestARefusedSliceAffectsOnlyTheRequestThatCausedIt(t *testing.T) {
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
	f.warm("/", "Range: bytes=0-99")
	bad := f.async(0, "/", "X-Bad: 1", "Range: bytes=100-199")
	<-begun
	f.joinedNobody()
	good := f.async(0, "/") // it has had the first slice when it waits for the second
	f.joins(1)
	close(hold)
	<-bad
	expect.Equal(t, "body", (<-good).body, filmed("a"))
}

// A page whose terms have changed is loaded again.
func TestAPageWhoseTermsHaveChangedIsStillSliced(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"Cache-Control: max-age=60, public", "Cache-Control: max-age=60, must-revalidate", "Vary: X-A"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			f := newFleet(t, 1, inSlices, p)
			f.learn("/")
			p.mu.Lock()
			p.header = []string{line}
			p.mu.Unlock()
			expect.Equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
			f.stored()
			expect.Equal(t, "it is still sliced", f.marked("/").Kind == record.Sliced, true)
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
	f.learn("/")
	a := f.get("/", "Cookie: session=old", "Range: bytes=0-9")
	expect.Equal(t, "body", a.body, filmed("a")[:10])
	expect.Equal(t, "cookie", a.Header.Get("Set-Cookie"), "session=renewed")
	f.stored()
	expect.Equal(t, "it is still sliced", f.marked("/").Kind == record.Sliced, true)
	expect.Equal(t, "cookie of another", f.get("/", "Range: bytes=0-9").Header.Get("Set-Cookie"), "")
}

// This holds for every mark except no-ranges, which only the answer for a slice could disprove.
func TestAMarkedPageIsSlicedWhenItsMarkExpires(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"set-cookie", "private", "no-store", "flush", writer.TooLarge /* before slices were switched on */} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			f := newFleet(t, 1, inSlices, p)
			f.mark("/", why)
			redistest.Await(t, "it is sliced", func() bool {
				expect.Equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
				rec := f.marked("/")
				return rec != nil && rec.Kind == record.Sliced
			})
		})
	}
}

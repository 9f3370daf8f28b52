package middleware

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// One bad request while a page may be served stale must not take the page away from the others.
func TestAFailedRefreshKeepsTheOldPage(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]http.HandlerFunc{
		"500":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"503":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"400":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) },
		"404":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"panic":   func(http.ResponseWriter, *http.Request) { panic("ouch") },
		"abort":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"private": says("mine", "Cache-Control: private"),
		"cookie":  says("mine", fresh, "Set-Cookie: a=b"),
		"cut off": says("half", fresh, "Content-Length: 100"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ended atomic.Int64
			good := says("page", swr, "Age: 70")
			p := newPage(func(w http.ResponseWriter, r *http.Request) {
				defer ended.Add(1)
				if r.Header.Get("X-Bad") != "" {
					bad(w, r)
					return
				}
				good(w, r)
			})
			f := newFleet(t, 1, Config{}, p)
			f.get("/")
			expect.Equal(t, "the attack itself", f.get("/", "X-Bad: 1").body, "page")
			redistest.Await(t, "the refresh has ended", func() bool { return ended.Load() == 2 })
			for range 3 {
				if a := f.get("/"); a.body != "page" || a.Header.Get("Age") == "" {
					t.Errorf("got %q, %q", a.body, a.cacheStatus())
				}
			}
			expect.Equal(t, "passed", f.count(Passed), 0)
			expect.Equal(t, "loaded", f.count(Loaded), 1)
		})
	}
}

// A request that joined a failed load may get the earlier page only if it would have accepted that page.
func TestARequestThatJoinsAFailedLoadDoesNotGetThePageItRefused(t *testing.T) {
	t.Parallel()
	p := newPage(says("old", fresh, `ETag: "a"`))
	f := newFleet(t, 1, Config{}, p)
	f.warm("/")
	<-p.begun
	p.serve = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }
	p.held()
	first := f.async(0, "/", "Cache-Control: no-cache")
	<-p.begun
	f.joinedNobody()
	second := f.async(0, "/", "Cache-Control: no-cache")
	f.joins(1)
	close(p.hold)
	expect.Equal(t, "the request that began the load", (<-first).StatusCode, http.StatusBadRequest)
	expect.Equal(t, "the request that joined", (<-second).StatusCode, http.StatusBadRequest)
	expect.Equal(t, "another", f.get("/").body, "old")
}

func TestAnErrorLeavesNoMark(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 403, 404, 429, 500, 503} {
		p := newPage(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Bad") != "" {
				w.WriteHeader(status)
				return
			}
			says("page", fresh)(w, r)
		})
		f := newFleet(t, 1, Config{}, p)
		expect.Equal(t, "attack", f.get("/", "X-Bad: 1").StatusCode, status)
		f.get("/")
		f.get("/")
		expect.Equal(t, "calls", p.calls.Load(), 2)
	}
}

func TestAMarkCountsForItsVariantOnly(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "X-User")
		if r.Header.Get("X-User") != "" {
			says("mine", "Cache-Control: private")(w, r)
			return
		}
		says("page", fresh)(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	f.get("/", "X-User: a")
	f.get("/")
	f.get("/")
	expect.Equal(t, "calls", p.calls.Load(), 2)
	expect.Equal(t, "the client of the mark", f.get("/", "X-User: a").body, "mine")
	expect.Equal(t, "everybody else", f.get("/").body, "page")
	expect.Equal(t, "calls", p.calls.Load(), 3)
}

func TestAFailureDoesNotStandInForAFailure(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60, stale-if-error=600")
		w.Header().Set("Age", "70")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	f := newFleet(t, 1, Config{}, p)
	f.get("/")
	p.serve = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	expect.Equal(t, "status", f.get("/").StatusCode, http.StatusInternalServerError)
}

package middleware

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/redistest"
)

const swr = "Cache-Control: max-age=60, stale-while-revalidate=600"

// One bad request in the time in which a page may be stale must not take it away from everybody.
func TestARefreshThatBringsNoBetterPageLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]http.HandlerFunc{
		"500":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"503":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"400":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) },
		"404":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"panic":   func(http.ResponseWriter, *http.Request) { panic("ouch") },
		"abort":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"private": says("mine", "Cache-Control: private"),
		"cookie":  says("mine", "Cache-Control: max-age=60", "Set-Cookie: a=b"),
		"cut off": says("half", "Cache-Control: max-age=60", "Content-Length: 100"),
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
			equal(t, "the attack itself", f.get("/", "X-Bad: 1").body, "page")
			redistest.Await(t, "the refresh has ended", func() bool { return ended.Load() == 2 })
			for range 3 {
				if a := f.get("/"); a.body != "page" || a.Header.Get("Age") == "" {
					t.Errorf("got %q, %q", a.body, a.cacheStatus())
				}
			}
			equal(t, "passed", f.count(Passed), 0)
			equal(t, "loaded", f.count(Loaded), 1)
		})
	}
}

// A request that waits for a load that fails may get the page that was there before only if it would have accepted that.
func TestWhoJoinsALoadThatFailsDoesNotGetWhatHeRefused(t *testing.T) {
	t.Parallel()
	p := newPage(says("old", "Cache-Control: max-age=60", `ETag: "a"`))
	f := newFleet(t, 1, Config{}, p)
	f.get("/")
	f.stored()
	<-p.begun
	p.serve = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }
	p.held()
	first := f.async(0, "/", "Cache-Control: no-cache")
	<-p.begun
	second := f.async(0, "/", "Cache-Control: no-cache")
	f.awaitJoined(1)
	close(p.hold)
	equal(t, "who began", (<-first).StatusCode, http.StatusBadRequest)
	equal(t, "who joined", (<-second).StatusCode, http.StatusBadRequest)
	equal(t, "another", f.get("/").body, "old")
}

func TestAnErrorIsNotRememberedAsAPageThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 403, 404, 429, 500, 503} {
		p := newPage(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Bad") != "" {
				w.WriteHeader(status)
				return
			}
			says("page", "Cache-Control: max-age=60")(w, r)
		})
		f := newFleet(t, 1, Config{}, p)
		equal(t, "attack", f.get("/", "X-Bad: 1").StatusCode, status)
		f.get("/")
		f.get("/")
		equal(t, "calls", p.calls.Load(), 2)
	}
}

func TestThatAPageCannotBeStoredIsRememberedOfItsVariantAlone(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "X-User")
		if r.Header.Get("X-User") != "" {
			says("mine", "Cache-Control: private")(w, r)
			return
		}
		says("page", "Cache-Control: max-age=60")(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	f.get("/", "X-User: a")
	f.get("/")
	f.get("/")
	equal(t, "calls", p.calls.Load(), 2)
	equal(t, "who is passed", f.get("/", "X-User: a").body, "mine")
	equal(t, "everybody else", f.get("/").body, "page")
	equal(t, "calls", p.calls.Load(), 3)
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
	equal(t, "status", f.get("/").StatusCode, http.StatusInternalServerError)
}

package middleware

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// broken is a request whose handler panics.
type broken struct {
	method, field, before string
	begun                 string // what the handler has done before: nothing, or begun a response that can be stored, or not
	panics                string
	left                  bool // by its client
}

var (
	brokenMethods = []string{http.MethodGet, http.MethodGet, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions}
	brokenFields  = []string{"", "Cache-Control: no-store", "Cache-Control: no-cache", "Range: bytes=0-1", "X-Bypass: 1", "If-Match: x"}
	brokenBefore  = []string{"", "max-age=60", "max-age=0", "private"} // there was a page, or a mark
	brokenBegun   = []string{"", "max-age=60", "no-store"}
	brokenPanics  = map[string]func(){
		"a text":   func() { panic("oops") },
		"an error": func() { panic(errors.New("oops")) },
		"abort":    func() { panic(http.ErrAbortHandler) },
		"its end":  runtime.Goexit,
	}
)

func drawBroken() broken {
	one := func(of []string) string { return of[rand.IntN(len(of))] }
	b := broken{
		method: one(brokenMethods), field: one(brokenFields), before: one(brokenBefore), begun: one(brokenBegun),
		panics: one([]string{"a text", "an error", "abort", "its end"}), left: rand.IntN(4) == 0,
	}
	if b.panics != "abort" {
		b.left = false
	}
	return b
}

// try sends the request, and returns how it was answered.
func (b broken) try(t *testing.T, cache *Cache, results <-chan Response, path string) Response {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	panicking := false
	handler := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !panicking {
			says("page", "Cache-Control: "+b.before)(w, nil)
			return
		}
		if b.begun != "" {
			says("pa", "Cache-Control: "+b.begun)(w, nil)
		}
		if b.left { // after that: a request whose client leaves before anything is sent has failed
			leave()
		}
		brokenPanics[b.panics]()
	}))
	ask := func(r *http.Request) Response {
		done := make(chan struct{})
		go func() { // owner: ask; stop: the answer; joined by receiving
			defer close(done)
			defer func() { _ = recover() }()
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}()
		<-done
		return <-results
	}
	if b.before != "" {
		ask(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	}
	panicking = true
	r := httptest.NewRequestWithContext(ctx, b.method, path, http.NoBody)
	if name, value, is := strings.Cut(b.field, ": "); is {
		r.Header.Set(name, value)
	}
	return ask(r)
}

func TestARequestWhoseHandlerPanicsHasFailedWhereverItRan(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	results := make(chan Response, 10)
	called := 0
	for i := range expect.Samples(200, 2000) {
		b := drawBroken()
		cache, err := New(f.guards[0], Config{
			Space: fmt.Sprint("s", i), StaleIfError: -1, OnResponse: func(_ *http.Request, res Response) { results <- res },
			Bypass: func(r *http.Request) bool { return r.Header.Get("X-Bypass") != "" },
		})
		expect.ErrorIs(t, err)
		res := b.try(t, cache, results, "/")
		isHit := b.before == "max-age=60" && (b.method == http.MethodGet || b.method == http.MethodHead) && (b.field == "" || strings.HasPrefix(b.field, "Range"))
		switch {
		case isHit:
			expect.Equal(t, fmt.Sprintf("%+v", b), res.Result, Hit)
		case res.Result == Stale && b.field == "Cache-Control: no-cache" && b.before == "max-age=60": // it stands in for what broke off
		case b.left && res.Result == Passed: // to a client that is not there
		case res.Result != Failed || res.NotStored != "":
			t.Errorf("%+v: %+v", b, res)
		default:
			called++
		}
	}
	expect.Equal(t, "handlers have panicked", called > 20, true)
}

func TestAnOriginThatBreaksOffIsAFailureAndAClientThatLeavesIsNone(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]bool{"the origin": false, "the client": true} {
		for _, field := range brokenFields {
			f := newFleet(t, 1, Config{}, http.NotFoundHandler())
			results := make(chan Response, 10)
			cache, err := New(f.guards[0], Config{OnResponse: func(_ *http.Request, res Response) { results <- res }, Bypass: func(r *http.Request) bool { return r.Header.Get("X-Bypass") != "" }})
			expect.ErrorIs(t, err)
			res := broken{method: http.MethodGet, field: field, begun: "no-store", panics: "abort", left: left}.try(t, cache, results, "/")
			isWithoutAnswer := left && strings.HasPrefix(field, "Range") // its handler was stopped, as nobody else wants the whole page
			if !isWithoutAnswer && (res.Result == Failed) == left {
				t.Errorf("%s leaves, %q: %+v", name, field, res)
			}
		}
	}
}

// A page in slices fails if its handler panics for the first slice, and passes the client to the handler, or for a later one, when something has been sent.
func TestARequestForSlicesWhoseHandlerPanicsHasFailed(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"bytes=0-99", "bytes=200-299"} {
		for name, breaks := range brokenPanics {
			f := newFleet(t, 1, Config{}, http.NotFoundHandler())
			results := make(chan Response, 10)
			set := inSlices
			set.OnResponse = func(_ *http.Request, res Response) { results <- res }
			cache, err := New(f.guards[0], set)
			expect.ErrorIs(t, err)
			p := newFilm()
			handler := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") == at || r.Header.Get("X-Broken") != "" && at == "bytes=0-99" {
					breaks()
				}
				p.serve(w, r)
			}))
			ask := func(field string) Response {
				done := make(chan struct{})
				go func() { // owner: ask; stop: the answer; joined by receiving
					defer close(done)
					defer func() { _ = recover() }()
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
					r.Header.Set(field, "1")
					handler.ServeHTTP(httptest.NewRecorder(), r)
				}()
				<-done
				return <-results
			}
			expect.Equal(t, "made: status", ask("X-Well").Status, http.StatusOK)
			expect.Equal(t, at+", "+name, ask("X-Broken").Result, Failed)
		}
	}
}

func TestARefreshThatPanicsIsNoFailureOfTheRequestThatCausedIt(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	results, refreshed := make(chan Response, 10), make(chan struct{}, 10)
	cache, err := New(f.guards[0], Config{OnResponse: func(_ *http.Request, res Response) { results <- res }})
	expect.ErrorIs(t, err)
	made := false
	handler := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if made {
			refreshed <- struct{}{}
			panic("oops")
		}
		made = true
		says("page", swr, "Age: 70")(w, r)
	}))
	for _, want := range []Result{Loaded, Stale} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
		expect.Equal(t, "result", (<-results).Result, want)
		f.stored()
	}
	<-refreshed
}

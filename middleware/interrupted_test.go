package middleware

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// A handler that obeys its context returns when LoadTimeout ends it, as if it were done.
func TestAHandlerThatExceedsLoadTimeoutIsAnsweredWith504(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(w http.ResponseWriter, until <-chan struct{}){
		"half a page": func(w http.ResponseWriter, until <-chan struct{}) {
			w.Header().Set("Cache-Control", "max-age=60")
			_, _ = io.WriteString(w, "half")
			<-until
		},
		"nothing": func(_ http.ResponseWriter, until <-chan struct{}) { <-until },
		"the header": func(w http.ResponseWriter, until <-chan struct{}) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.WriteHeader(http.StatusOK)
			<-until
		},
		"what a browser may store": func(w http.ResponseWriter, until <-chan struct{}) {
			<-until
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			_, _ = io.WriteString(w, "half")
		},
		"what is private": func(w http.ResponseWriter, until <-chan struct{}) {
			<-until
			w.Header().Set("Cache-Control", "private, max-age=60")
			_, _ = io.WriteString(w, "half")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newHurried(t, Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r.Context().Done()) }))
			a := f.get("/")
			expect.Equal(t, "status", a.StatusCode, http.StatusGatewayTimeout)
			expect.Equal(t, "Cache-Control", a.Header.Get("Cache-Control"), "no-store")
			expect.Equal(t, "Last-Modified", a.Header.Get("Last-Modified"), "")
		})
	}
}

// Nobody gets what is not the whole page, so a handler that was stopped once is not called again, without a time-out.
func TestAHandlerThatExceedsLoadTimeoutIsNotCalledAgainForAPartOfThePage(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			p := newPage(nil)
			p.serve = func(_ http.ResponseWriter, r *http.Request) {
				if p.calls.Load() == 1 {
					<-r.Context().Done()
				}
			}
			a := newHurried(t, Config{}, p).do(0, method, "/", "Range: bytes=0-1")
			expect.Equal(t, "status", a.StatusCode, http.StatusGatewayTimeout)
			expect.Equal(t, "calls", p.calls.Load(), 1)
		})
	}
}

// A response that is complete by its Content-Length is sent, however late it is.
func TestACompletePageIsSentEvenIfItIsLate(t *testing.T) {
	t.Parallel()
	f := newHurried(t, Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "whole")
	}))
	expect.Equal(t, "body", f.get("/").body, "whole")
}

func TestAStalePageStandsInForAnInterruptedHandler(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]http.HandlerFunc{
		"it takes too long":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"its origin has broken off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(says("page", fresh, "Age: 70"))
			f := newHurried(t, Config{StaleIfError: time.Minute}, p)
			f.get("/")
			p.serve = serve
			for range 2 {
				expect.Equal(t, "body", f.get("/").body, "page")
			}
			expect.Equal(t, "reported as stale", f.count(Stale), 2)
		})
	}
}

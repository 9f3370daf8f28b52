package middleware

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// Handlers that obey their context return when LoadTimeout ends it, as if they were done.
func TestAHandlerThatLoadTimeoutEndsIsAnsweredForWith504(t *testing.T) {
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
			f := newFleetOn(t, shared, 1, Config{}, cacheguard.Config{LoadTimeout: 50 * time.Millisecond},
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r.Context().Done()) }))
			a := f.get("/")
			equal(t, "status", a.StatusCode, http.StatusGatewayTimeout)
			equal(t, "Cache-Control", a.Header.Get("Cache-Control"), "no-store")
			equal(t, "Last-Modified", a.Header.Get("Last-Modified"), "")
		})
	}
}

// A response that the handler has made as a whole is one, however late.
func TestAPageThatIsWholeIsSentAlthoughItIsLate(t *testing.T) {
	t.Parallel()
	f := newFleetOn(t, shared, 1, Config{}, cacheguard.Config{LoadTimeout: 50 * time.Millisecond},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "whole")
		}))
	equal(t, "body", f.get("/").body, "whole")
}

func TestAStalePageStandsInForAHandlerThatDoesNotGetThere(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]http.HandlerFunc{
		"it takes too long":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"its origin has broken off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(says("page", "Cache-Control: max-age=60", "Age: 70"))
			f := newFleetOn(t, shared, 1, Config{StaleIfError: time.Minute}, cacheguard.Config{LoadTimeout: 50 * time.Millisecond}, p)
			f.get("/")
			p.serve = serve
			for range 2 {
				equal(t, "body", f.get("/").body, "page")
			}
			equal(t, "told as stale", f.count(Stale), 2)
		})
	}
}

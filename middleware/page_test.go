package middleware

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// The fields that handlers set about the lifetime of their pages.
const (
	fresh = "Cache-Control: max-age=60"
	swr   = "Cache-Control: max-age=60, stale-while-revalidate=600"
)

// page is a handler that counts its calls and can hold them up.
type page struct {
	calls atomic.Int64
	begun chan struct{}
	hold  chan struct{} // nil: not held up
	serve http.HandlerFunc
}

func newPage(serve http.HandlerFunc) *page {
	return &page{begun: make(chan struct{}, 1000), serve: serve}
}

// held makes the calls wait until hold is closed, or their contexts end.
func (p *page) held() *page {
	p.hold = make(chan struct{})
	return p
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.calls.Add(1)
	p.begun <- struct{}{}
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-r.Context().Done():
			http.Error(w, "cancelled", http.StatusServiceUnavailable)
			return
		}
	}
	p.serve(w, r)
}

// says is a handler that always gives the same answer.
func says(body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range header {
			name, value, _ := strings.Cut(line, ":")
			w.Header().Add(name, strings.TrimSpace(value))
		}
		_, _ = io.WriteString(w, body) // a client that has left
	}
}

// proxy is a handler that forwards to an origin.
func proxy(t *testing.T, origin http.Handler) *httputil.ReverseProxy {
	t.Helper()
	server := httptest.NewServer(origin)
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return httputil.NewSingleHostReverseProxy(target)
}

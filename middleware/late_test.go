package middleware

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// net/http sends the header as it is at WriteHeader. A field that the handler adds later is neither sent nor stored.
func TestAFieldAddedTooLateIsNotStored(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("Set-Cookie", "session=secret")
		w.Header().Add("Cache-Control", "private")
		w.Header().Set("X-Sum", "42")
	})
	f := newFleet(t, 1, Config{}, p)
	for range 2 {
		a := f.get("/")
		expect.Equal(t, "the cookie", a.Header.Get("Set-Cookie"), "")
		expect.Equal(t, "Cache-Control", strings.Join(a.Header.Values("Cache-Control"), ", "), "max-age=60")
		expect.Equal(t, "the trailer", a.Trailer.Get("X-Sum"), "42")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

func TestAFieldAddedTooLateIsNotSent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{MaxBody: 10}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("X-Late", "1")
		_, _ = io.WriteString(w, strings.Repeat("x", 20))
	}))
	expect.Equal(t, "the field", f.get("/").Header.Get("X-Late"), "")
}

// ReverseProxy removes the fields of an informational response before it continues.
func TestFieldsOfAnInformationalResponseDoNotStay(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		clear(w.Header())
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "hello")
	}))
	for range 2 {
		expect.Equal(t, "Link", f.get("/").Header.Get("Link"), "")
	}
}

// If a stale page stands in for a failure, nobody gets the body of the failure, which may be endless.
func TestTheBodyOfAFailureIsNotKeptIfAStalePageStandsIn(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", "Cache-Control: max-age=60, stale-if-error=600", "Age: 70"))
	f := newFleet(t, 1, Config{MaxBody: 1000}, p)
	f.get("/")
	p.serve = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		for range 100 {
			if n, err := io.WriteString(w, strings.Repeat("x", 100)); n != 100 || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
		}
		if rec, ok := w.(*writer.Recorder); ok {
			expect.Equal(t, "bytes kept", len(rec.Body), 0)
		}
	}
	a := f.get("/")
	expect.Equal(t, "body", a.body, "page")
	expect.Equal(t, "reported as stale", f.count(Stale), 1)
}

package middleware

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cacheguard/go/middleware/internal/writer"
)

// net/http sends the header as it is when it is written. What a handler adds to it later is neither sent nor stored.
func TestWhatIsAddedToTheHeaderTooLateIsNotStored(t *testing.T) {
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
		equal(t, "the cookie", a.Header.Get("Set-Cookie"), "")
		equal(t, "Cache-Control", strings.Join(a.Header.Values("Cache-Control"), ", "), "max-age=60")
		equal(t, "the trailer", a.Trailer.Get("X-Sum"), "42")
	}
	equal(t, "calls", p.calls.Load(), 1)
}

func TestWhatIsAddedToTheHeaderTooLateIsNotSentEither(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{MaxBody: 10}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("X-Late", "1")
		_, _ = io.WriteString(w, strings.Repeat("x", 20))
	}))
	equal(t, "the field", f.get("/").Header.Get("X-Late"), "")
}

// ReverseProxy takes the fields of an informational response away before it goes on.
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
		equal(t, "Link", f.get("/").Header.Get("Link"), "")
	}
}

// The body of a failure that a stale page stands in for is sent to nobody, and may be endless.
func TestTheBodyOfAFailureIsNotKeptWhenAStalePageStandsIn(t *testing.T) {
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
			equal(t, "bytes kept", len(rec.Body), 0)
		}
	}
	a := f.get("/")
	equal(t, "body", a.body, "page")
	equal(t, "told as", f.count(Stale), 1)
}

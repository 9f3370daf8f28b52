package middleware

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// trailing is a page with a trailer.
func trailing(control, name, value string) *page {
	return newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", control)
		_, _ = io.WriteString(w, "page")
		w.Header()[http.TrailerPrefix+name] = []string{value}
	})
}

func TestATrailerThatMayNotBeStoredReachesTheClientThatCausedItOnly(t *testing.T) {
	t.Parallel()
	for _, directive := range []string{`no-cache="X-User"`, `private="X-User"`} {
		for _, name := range []string{"X-User", "x-user"} {
			p := trailing("max-age=60, "+directive, name, "me")
			f := newFleet(t, 1, Config{}, p)
			expect.Equal(t, "the client that caused it", f.get("/").Trailer.Get("X-User"), "me")
			a := f.get("/")
			expect.Equal(t, "another", a.Trailer.Get("X-User"), "")
			expect.Equal(t, "its body", a.body, "page")
			expect.Equal(t, "calls", p.calls.Load(), 1)
		}
	}
}

func TestAResponseWithACookieInItsTrailerIsNotStored(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Set-Cookie", "set-cookie"} {
		p := trailing("max-age=60", name, "session=1")
		f := newFleet(t, 1, Config{}, p)
		for range 2 {
			a := f.get("/")
			expect.Equal(t, "body", a.body, "page")
			expect.Equal(t, "Cache-Status", strings.HasSuffix(a.cacheStatus(), "; detail=set-cookie"), true)
		}
		expect.Equal(t, "calls", p.calls.Load(), 2)
	}
}

func TestACookieInATrailerIsStoredIfCookiesAre(t *testing.T) {
	t.Parallel()
	p := trailing("max-age=60", "Set-Cookie", "session=1")
	f := newFleet(t, 1, Config{StoreSetCookie: true}, p)
	for range 2 {
		expect.Equal(t, "the cookie", f.get("/").Trailer.Get("Set-Cookie"), "session=1")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

func TestATrailerWithALineBreakIsNotStored(t *testing.T) {
	t.Parallel()
	p := trailing("max-age=60", "X-Sum", "a\r\nb")
	f := newFleet(t, 1, Config{}, p)
	for range 2 {
		a := f.get("/")
		expect.Equal(t, "body", a.body, "page")
		expect.Equal(t, "Cache-Status", strings.HasSuffix(a.cacheStatus(), "; detail=field"), true)
	}
}

// A 304 has no trailer: fields that it announces as such are about itself.
func TestTheTrailersOfA304AreNotStored(t *testing.T) {
	t.Parallel()
	p := newPage(stalePage)
	f := newFleet(t, 1, Config{}, p)
	f.warm("/")
	p.serve = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Trailer", "X-A")
		w.Header().Set("X-A", "mine")
		w.Header()[http.TrailerPrefix+"X-B"] = []string{"mine"}
		w.WriteHeader(http.StatusNotModified)
	}
	for range 2 {
		a := f.get("/")
		expect.Equal(t, "body", a.body, "page")
		expect.Equal(t, "the field", a.Header.Get("X-A")+a.Trailer.Get("X-B"), "")
		f.stored()
	}
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

package middleware

import (
	"net/http"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Handlers see the absolute form in RequestURI and in the URL, and may write it into links and redirects.
func TestARequestInAbsoluteFormDoesNotShapeThePageOfTheOriginForm(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]func(r *http.Request) string{
		"the URL":          func(r *http.Request) string { return r.URL.String() },
		"the request line": func(r *http.Request) string { return "https://" + r.Host + r.RequestURI },
	} {
		p := newPage(func(w http.ResponseWriter, r *http.Request) { says(seen(r), fresh)(w, r) })
		f := newFleet(t, 1, Config{}, p)
		for _, form := range []string{"/a?b", "http://" + host + "/a?b", "HTTP://" + host + "/a?b", "http://SHOP.example/a?b"} {
			attacked := f.raw(t, "GET "+form+" HTTP/1.1").body
			f.stored()
			calls := p.calls.Load()
			expect.Equal(t, name+", again", f.raw(t, "GET "+form+" HTTP/1.1").body, attacked)
			expect.Equal(t, name+", calls for a hit", p.calls.Load()-calls, 0)
		}
		clean := newFleet(t, 1, Config{}, p).get("/a?b").body
		expect.Equal(t, name+", what others get", f.get("/a?b").body, clean)
	}
}

func TestAPageInEitherFormIsInvalidatedByEither(t *testing.T) {
	t.Parallel()
	forms := []string{"/a?b", "http://" + host + "/a?b"}
	for _, changed := range forms {
		p := newPage(says("page", fresh))
		f := newFleet(t, 1, Config{}, p)
		for range 2 {
			for _, form := range forms {
				f.raw(t, "GET "+form+" HTTP/1.1")
				f.stored()
			}
			f.raw(t, "POST "+changed+" HTTP/1.1")
		}
		expect.Equal(t, "calls for two pages, made twice, and two changes", p.calls.Load(), 6)
	}
}

func TestARequestThatOverridesItsMethodPasses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_Http_Method_Override"} {
		p := newPage(says("page", fresh))
		f := newFleet(t, 1, Config{}, p)
		for range 2 {
			expect.Equal(t, name, f.get("/", name+": DELETE").cacheStatus(), "cacheguard; fwd=bypass")
		}
		expect.Equal(t, name+", calls", p.calls.Load(), 2)
		expect.Equal(t, name+", from the cache alone", f.get("/", name+": DELETE", "Cache-Control: only-if-cached").StatusCode, http.StatusGatewayTimeout)
	}
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{NotKeyFields: []string{"X-HTTP-Method-Override"}}, p)
	f.warm("/")
	f.get("/", "X-HTTP-Method-Override: DELETE")
	expect.Equal(t, "calls where no handler reads the field", p.calls.Load(), 1)

	for query, passes := range map[string]bool{
		"?_method=DELETE": true, "?a=b&%5Fmethod=put": true, "?_method": true, "?pay_method=card": false, "?a=_method": false, "?_Method=PUT": false,
	} {
		p := newPage(says("page", fresh))
		f := newFleet(t, 1, Config{}, p)
		f.warm("/" + query)
		f.get("/" + query)
		expect.Equal(t, query+": it passes", p.calls.Load() == 2, passes)
	}
}

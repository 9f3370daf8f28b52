package middleware

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware/internal/canonical"
)

// asked is the request that net/http makes of a request line.
func asked(t *testing.T, target string, secure bool) *http.Request {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	if secure {
		r.TLS = new(tls.ConnectionState)
	}
	return r
}

func TestRequestsThatAHandlerCanTellApartAreDifferentPages(t *testing.T) {
	t.Parallel()
	type request struct {
		target string
		secure bool
	}
	for name, pair := range map[string][2]request{
		"another scheme than that of the connection": {{"https://" + host + "/", false}, {"/", true}},
		"the other way":               {{"http://" + host + "/", true}, {"/", false}},
		"a path that was not escaped": {{`/x"%2Fy`, false}, {"/x%22/y", false}},
		"a path that is not ASCII":    {{"/caf\xc3\xa9%2Fmenu", false}, {"/caf%C3%A9/menu", false}},
		"a URL without a path":        {{"http:a", false}, {"http:b", false}},
		"credentials in the URL":      {{"http://a@" + host + "/", false}, {"/", false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := asked(t, pair[0].target, pair[0].secure), asked(t, pair[1].target, pair[1].secure)
			names := canonical.New(canonical.Settings{MaxURL: 8 << 10})
			if !names.Odd(a) && !names.Odd(b) && names.Location(a) == names.Location(b) && slices.Equal(names.Unnamed(a, ""), names.Unnamed(b, "")) {
				t.Errorf("both are %q", names.Location(a))
			}
		})
	}
}

// A client of HTTP/2 can send an authority with a slash.
func TestAHostDoesNotReachIntoThePath(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		says(r.Host+" "+r.URL.Path, fresh)(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	handler := f.caches[0].Handler(p)
	answer := func(host, path string) string {
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), httptest.NewRecorder()
		r.Host = host
		handler.ServeHTTP(w, r)
		return w.Body.String()
	}
	expect.Equal(t, "attack", answer(host+"/a", "/b"), host+"/a /b")
	expect.Equal(t, "afterwards", answer(host, "/a/b"), host+" /a/b")
}

// A handler redirects clients without TLS to the same page with TLS. They must not be able to redirect the others too.
func TestARedirectToTLSDoesNotReachRequestsThatUseTLS(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.TLS == nil {
			http.Redirect(w, r, "https://"+host+"/", http.StatusMovedPermanently)
			return
		}
		_, _ = io.WriteString(w, "page")
	})
	f := newFleet(t, 1, Config{}, p)
	handler := f.caches[0].Handler(p)
	ask := func(target string, secure bool) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, asked(t, target, secure))
		return w
	}
	expect.Equal(t, "attack", ask("https://"+host+"/", false).Code, http.StatusMovedPermanently)
	expect.Equal(t, "afterwards", ask("/", true).Body.String(), "page")
	// Behind a proxy that ends TLS, some middlewares set the scheme. The page can still be invalidated by its URL.
	calls := p.calls.Load()
	ask("https://"+host+"/", false)
	expect.Equal(t, "calls for a hit", p.calls.Load()-calls, 0)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "error", f.caches[0].Invalidate(t.Context(), r), nil)
	ask("https://"+host+"/", false)
	ask("/", true)
	expect.Equal(t, "calls after Invalidate", p.calls.Load()-calls, 2)
}

// Behind a proxy that ends TLS, instances store under http what clients know as https.
func TestAPageIsInvalidatedByItsURLForEveryKindOfConnection(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{}, p)
	handler := f.caches[0].Handler(p)
	for _, c := range []struct {
		named  string
		secure bool
	}{{"https", false}, {"http", false}, {"https", true}, {"http", true}} {
		handler.ServeHTTP(httptest.NewRecorder(), asked(t, "/", c.secure))
		calls := p.calls.Load()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.named+"://"+host+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, "error", f.caches[0].Invalidate(t.Context(), r), nil)
		handler.ServeHTTP(httptest.NewRecorder(), asked(t, "/", c.secure))
		expect.Equal(t, "calls after Invalidate", p.calls.Load()-calls, 1)
	}
}

func TestInvalidatingARequestWithoutAHostIsAnError(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*http.Request{nil, {}, r} {
		if err := f.caches[0].Invalidate(t.Context(), r); err == nil {
			t.Errorf("no error for %v", r)
		}
	}
}

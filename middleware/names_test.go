package middleware

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/internal/testing/expect"
)

// A page has one name, in whatever notation it is asked for, and by whatever it is invalidated.

// sent is a request as it comes: over TLS or not, its line's target, and its Host.
type sent struct {
	secure       bool
	target, host string
}

func (s sent) request(method string, header ...string) *http.Request {
	lines := append([]string{method + " " + s.target + " HTTP/1.1", "Host: " + s.host}, header...)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Join(lines, "\r\n") + "\r\n\r\n")))
	if err != nil {
		panic(err)
	}
	if s.secure {
		r.TLS = new(tls.ConnectionState)
	}
	return r
}

// same are pages in many notations, as requests and as URIs.
var same = map[string]struct {
	requests []sent
	uris     []string
}{
	"an empty path": {
		[]sent{{false, "/", host}, {false, "http://" + host, ""}},
		[]string{"http://" + host, "http://" + host + "/", "https://" + host, "http://" + host + "#top"},
	},
	"an empty path with a query": {
		[]sent{{false, "/?x=1", host}, {false, "http://" + host + "?x=1", ""}},
		[]string{"http://" + host + "?x=1", "https://" + host + "/?x=1"},
	},
	"the default port": {
		[]sent{{false, "/a", host}, {false, "/a", host + ":80"}, {false, "/a", host + ":"}, {true, "/a", host + ":443"}, {false, "http://" + host + ":80/a", ""}, {false, "/a", host + ":443"}},
		[]string{"http://" + host + ":80/a", "https://" + host + ":443/a", "http://" + host + ":/a", "http://" + host + ":080/a", "https://" + host + "/a"},
	},
	"another port": {
		[]sent{{false, "/a", host + ":8080"}, {false, "/a", host + ":08080"}, {true, "/a", host + ":8080"}},
		[]string{"http://" + host + ":8080/a", "https://" + host + ":8080/a"},
	},
	"letters, and the dot of the root": {
		[]sent{{false, "/a", "Shop.EXAMPLE"}, {false, "/a", host + "."}, {false, "/a", "SHOP.example.:80"}, {false, "HTTP://SHOP.example/a", ""}},
		[]string{"HTTP://Shop.Example/a", "http://" + host + "./a", "https://" + host + ".:443/a"},
	},
	"what need not be escaped, and letters of what is": {
		[]sent{{false, "/a~b%2Fc?d=%3D&e=f", host}, {false, "/%61%7eb%2fc?%64=%3d&e=%66", host}},
		[]string{"http://" + host + "/a%7Eb%2fc?d=%3d&e=f", "https://" + host + "/%61~b%2Fc?d=%3D&%65=f"},
	},
	"what must be escaped": {
		[]sent{{false, "/caf%C3%A9%22?%C3%A9=[%22]", host}, {false, "/caf\xc3\xa9\"?\xc3\xa9=[\"]", host}},
		[]string{"http://" + host + "/café%22?%c3%a9=%5B%22%5D"},
	},
	"dots": {
		[]sent{{false, "/a/b/", host}, {false, "/a/./b/.", host}, {false, "/../a/x/../b/", host}, {false, "/%2e%2E/a/%2e/b/", host}},
		[]string{"http://" + host + "/a/b/", "http://" + host + "/a/c/../b/"},
	},
	"IPv6": {
		[]sent{{false, "/a", "[::1]"}, {false, "/a", "[0:0:0:0:0:0:0:1]:80"}, {false, "/a", "[::0001]"}},
		[]string{"http://[::1]/a", "http://[0000::1]:80/a", "https://[::1]:443/a"},
	},
	"IPv4 within IPv6": {
		[]sent{{false, "/a", "[::ffff:192.0.2.1]"}, {false, "/a", "[::FFFF:C000:201]"}},
		[]string{"http://[0::ffff:c000:0201]/a"},
	},
	"IDNA": {
		[]sent{{false, "/a", "xn--bcher-kva.example"}, {false, "/a", "XN--BCHER-KVA.example:80"}, {false, "/a", "b%C3%BCcher.example"}},
		[]string{"http://bücher.example/a", "http://BÜCHER.example:80/a", "http://b%c3%bccher.example/a", "https://xn--bcher-kva.example/a"},
	},
	"a scheme that only a proxy knows": {
		[]sent{{false, "https://" + host + "/a", ""}, {false, "/a", host}, {true, "/a", host}, {true, "http://" + host + "/a", ""}},
		[]string{"https://" + host + "/a", "http://" + host + "/a"},
	},
}

// different are pairs of pages with nothing in common.
var different = [][2]sent{
	{{false, "/a", host}, {false, "/a", host + ":8080"}},
	{{false, "/a", host + ":8080"}, {false, "/a", host + ":8443"}},
	{{false, "/a", host}, {false, "/A", host}},
	{{false, "/a", host}, {false, "/a/", host}},
	{{false, "/a", host}, {false, "/a?", host}},
	{{false, "/a", host}, {false, "//a", host}},
	{{false, "/a/b", host}, {false, "/a%2Fb", host}},
	{{false, "/a?b", host}, {false, "/a%3Fb", host}},
	{{false, "/a?b=c", host}, {false, "/a?b%3Dc", host}},
	{{false, "/a?b+c", host}, {false, "/a?b%20c", host}},
	{{false, "/a?b/../c", host}, {false, "/a?c", host}},
	{{false, "/a", host}, {false, "/a", host + ".."}},
	{{false, "/a", host}, {false, "/a", "www." + host}},
	{{false, "/a", "[::1]"}, {false, "/a", "[::2]"}},
}

// byRequest are the ways in which a request or a URI invalidates a page.
var byRequest = map[string]func(c *Cache, h http.Handler, s sent) error{
	"POST": func(_ *Cache, h http.Handler, s sent) error {
		h.ServeHTTP(httptest.NewRecorder(), s.request(http.MethodPost))
		return nil
	},
	"POST through a proxy that ends TLS": func(_ *Cache, h http.Handler, s sent) error {
		h.ServeHTTP(httptest.NewRecorder(), s.request(http.MethodPost, "X-Forwarded-Proto: https"))
		return nil
	},
	"PURGE": func(c *Cache, _ http.Handler, s sent) error {
		w := httptest.NewRecorder()
		c.PurgeHandler(func(*http.Request) bool { return true }).ServeHTTP(w, s.request("PURGE"))
		if w.Code != http.StatusNoContent || w.Header().Get("Cache-Status") != "" {
			return fmt.Errorf("%d %v", w.Code, w.Header())
		}
		return nil
	},
	"Invalidate": func(c *Cache, _ http.Handler, s sent) error {
		return c.Invalidate(context.Background(), s.request(http.MethodGet))
	},
	"a group": func(_ *Cache, h http.Handler, s sent) error {
		s.target, s.host = "/else", s.request(http.MethodGet).Host
		h.ServeHTTP(httptest.NewRecorder(), s.request(http.MethodPost, "Group: 1"))
		return nil
	},
}

// byURI are the ways in which a URI does.
var byURI = map[string]func(c *Cache, h http.Handler, uri string) error{
	"Invalidate": func(c *Cache, _ http.Handler, uri string) error {
		r, err := http.NewRequest(http.MethodGet, uri, nil)
		if err != nil {
			return err
		}
		return c.Invalidate(context.Background(), r)
	},
	"Location": func(_ *Cache, h http.Handler, uri string) error {
		u, err := http.NewRequest(http.MethodGet, uri, nil)
		if err != nil {
			return err
		}
		h.ServeHTTP(httptest.NewRecorder(), sent{u.URL.Scheme == "https", "/else", u.Host}.request(http.MethodPost, "To: "+uri))
		return nil
	},
}

// named is an instance whose page belongs to a group. A POST says in Location what its To has.
func named(t *testing.T, cfg Config) (*fleet, *page, http.Handler) {
	t.Helper()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("Location", r.Header.Get("To"))
			if r.Header.Get("Group") != "" {
				w.Header().Set("Cache-Group-Invalidation", `"all"`)
			}
			return
		}
		says("page", fresh, `Cache-Groups: "all"`)(w, r)
	})
	f := newFleet(t, 1, cfg, p)
	return f, p, f.caches[0].Handler(p)
}

func TestAPageHasOneNameInAllNotations(t *testing.T) {
	t.Parallel()
	for name, c := range same {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, p, h := named(t, Config{})
			gone := func(way string, s sent, invalidate func() error) {
				h.ServeHTTP(httptest.NewRecorder(), s.request(http.MethodGet))
				f.stored()
				calls := p.calls.Load()
				h.ServeHTTP(httptest.NewRecorder(), s.request(http.MethodGet))
				expect.Equal(t, fmt.Sprint("calls for a hit of ", s), p.calls.Load()-calls, 0)
				if err := invalidate(); err != nil {
					t.Errorf("%s: %v", way, err)
				}
				calls = p.calls.Load()
				h.ServeHTTP(httptest.NewRecorder(), s.request(http.MethodGet))
				expect.Equal(t, fmt.Sprintf("%v: made anew after %s", s, way), p.calls.Load()-calls, 1)
			}
			for _, s := range c.requests {
				for way, invalidate := range byRequest {
					for _, other := range c.requests {
						gone(fmt.Sprint(way, " of ", other), s, func() error { return invalidate(f.caches[0], h, other) })
					}
				}
				for way, invalidate := range byURI {
					for _, uri := range c.uris {
						gone(way+" of "+uri, s, func() error { return invalidate(f.caches[0], h, uri) })
					}
				}
			}
		})
	}
}

func TestWhatIsNoNotationOfAPageLeavesItAlone(t *testing.T) {
	t.Parallel()
	for _, pair := range different {
		f, p, h := named(t, Config{})
		for i, s := range pair {
			for way, invalidate := range byRequest {
				if way == "a group" || way == "PURGE" {
					continue // of a host; and it says that nothing is there
				}
				h.ServeHTTP(httptest.NewRecorder(), s.request(http.MethodGet))
				f.stored()
				if err := invalidate(f.caches[0], h, pair[1-i]); err != nil {
					t.Error(err)
				}
				calls := p.calls.Load()
				h.ServeHTTP(httptest.NewRecorder(), s.request(http.MethodGet))
				expect.Equal(t, fmt.Sprintf("%v: calls after %s of %v", s, way, pair[1-i]), p.calls.Load()-calls, 0)
			}
		}
	}
}

// Warm stores what clients ask for, and no variant of it.
func TestWarmNamesPagesAsClientsDo(t *testing.T) {
	t.Parallel()
	for uri, asks := range map[string]sent{
		"http://" + host:                   {false, "/", host},
		"http://" + host + "?x=1":          {false, "/?x=1", host},
		"http://" + host + ":80/a":         {false, "/a", host},
		"http://" + host + "./a":           {false, "/a", host},
		"http://SHOP.example/a":            {false, "/a", host},
		"https://" + host + ":443/a":       {true, "/a", host},
		"http://bücher.example/é":          {false, "/%C3%A9", "xn--bcher-kva.example"},
		"http://[0:0::1]:80/a":             {false, "/a", "[::1]"},
		"http://" + host + "/é/%3b%7e":     {false, "/%C3%A9/%3b%7e", host},
		"http://" + host + "//a/b%2Fc#top": {false, "//a/b%2Fc", host},
	} {
		f, p, h := named(t, Config{})
		stored, err := f.caches[0].Warm(t.Context(), p, slices.Values([]string{uri}), nil)
		expect.Equal(t, uri, fmt.Sprint(stored, err), "1 <nil>")
		f.stored()
		h.ServeHTTP(httptest.NewRecorder(), asks.request(http.MethodGet))
		expect.Equal(t, uri+": calls", p.calls.Load(), 1)
	}
}

// A router in front may go by what has been sent, and choose another handler for another notation. What one of them makes must not become
// the page of another.
func TestANotationThatARouterInFrontHasReadIsNoWayToPoisonAPage(t *testing.T) {
	t.Parallel()
	for _, evil := range []sent{
		{false, "/%61", host}, {false, "/x/../a", host}, {false, "/a", host + ":80"}, {false, "/a", host + "."}, {false, "/a", "SHOP.example"},
		{false, "/./a", host}, {false, "/%61", host + ":80"},
	} {
		f := newFleet(t, 1, Config{}, http.NotFoundHandler())
		with := f.caches[0].Handler
		mux := http.NewServeMux()
		mux.Handle(host+"/a", with(says("page", fresh)))
		mux.Handle("/", with(says("evil", fresh)))
		r := chi.NewRouter()
		r.With(with).Get("/a", says("page", fresh))
		r.With(with).Get("/*", says("evil", fresh))
		for name, router := range map[string]http.Handler{"http.ServeMux": mux, "chi": r} {
			router.ServeHTTP(httptest.NewRecorder(), evil.request(http.MethodGet))
			f.stored()
			for range 2 {
				w := httptest.NewRecorder()
				router.ServeHTTP(w, sent{false, "/a", host}.request(http.MethodGet))
				f.stored()
				expect.Equal(t, fmt.Sprint(name, " after ", evil), w.Body.String(), "page")
			}
			ctx := context.Background()
			expect.ErrorIs(t, f.caches[0].Invalidate(ctx, sent{false, "/a", host}.request(http.MethodGet)))
		}
	}
}

// Notations of a host are one page, where nobody in front has read them.
func TestNotationsOfAHostShareAPage(t *testing.T) {
	t.Parallel()
	for _, notations := range [][]sent{
		{{false, "/a", host}, {false, "/a", host + ":80"}, {false, "/a", "SHOP.example."}, {false, "/a", host + ":"}},
		{{true, "/a", host}, {true, "/a", host + ":443"}},
		{{false, "/a", "[::1]"}, {false, "/a", "[0::1]:80"}},
	} {
		f := newFleet(t, 1, Config{}, http.NotFoundHandler())
		p := newPage(func(w http.ResponseWriter, r *http.Request) { says(r.Host, fresh)(w, r) })
		h := f.caches[0].Handler(p)
		for _, s := range notations {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, s.request(http.MethodGet))
			f.stored()
			expect.Equal(t, fmt.Sprint(s, ": what the handler sees"), w.Body.String(), notations[0].host)
		}
		expect.Equal(t, "calls", p.calls.Load(), 1)
	}
}

// Instances that a balancer asks under addresses of their own share pages by Key.Host.
func TestAllHostsAreOneByKeyHost(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{Key: Key{Host: "Shop.example:80"}}, http.NotFoundHandler())
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.Header.Get("To"))
		says(r.Host, fresh)(w, r)
	})
	h := f.caches[0].Handler(p)
	ask := func(method, path, at string, header ...string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, sent{false, path, at}.request(method, header...))
		f.stored()
		return w.Body.String()
	}
	for _, at := range []string{"10.0.0.1:8080", "10.0.0.2:8080", host, "[::1]"} {
		expect.Equal(t, "what the handler sees", ask(http.MethodGet, "/a", at), host)
		expect.Equal(t, "calls", p.calls.Load(), 1)
	}
	mere, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/a", nil)
	expect.ErrorIs(t, err)
	for name, invalidate := range map[string]func() error{
		"POST":                func() error { ask(http.MethodPost, "/a", "10.0.0.3"); return nil },
		"a Location":          func() error { ask(http.MethodPost, "/b", "10.0.0.3", "To: /a"); return nil },
		"a Location, whole":   func() error { ask(http.MethodPost, "/b", "10.0.0.3:8080", "To: http://10.0.0.3:8080/a"); return nil },
		"a request to a path": func() error { return f.caches[0].Invalidate(t.Context(), mere) },
	} {
		expect.ErrorIs(t, invalidate())
		calls := p.calls.Load()
		ask(http.MethodGet, "/a", host)
		expect.Equal(t, "calls after "+name, p.calls.Load()-calls, 1)
	}
	for _, bad := range []string{"http://shop.example", "shop.example/a", "a b", "u@shop.example", "?"} {
		if _, err := New(f.guards[0], Config{Key: Key{Host: bad}}); err == nil || !strings.Contains(err.Error(), "Key.Host") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A prefix is one name in all notations, too.
func TestAPrefixIsFoundInEveryNotation(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"/caf%C3%A9/a b/", "/café/a%20b/"} {
		p := newPage(says("page", fresh))
		f := newFleet(t, 1, Config{Prefixes: []string{prefix}}, p)
		f.warm("/caf%c3%a9/a%20b/%31")
		expect.ErrorIs(t, f.caches[0].InvalidatePrefix(t.Context(), "/caf%C3%A9/a%20b/"))
		f.get("/caf%c3%a9/a%20b/%31")
		expect.Equal(t, prefix+": calls", p.calls.Load(), 2)
	}
}

package middleware

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// unsafeRequests are requests, their responses, and whether they invalidate the page /p.
var unsafeRequests = map[string]struct {
	method, path string
	status       int
	header       string
	invalidated  bool
	request      []string
}{
	"POST":                      {method: "POST", path: "/p", status: 200, invalidated: true},
	"PUT":                       {method: "PUT", path: "/p", status: 204, invalidated: true},
	"DELETE":                    {method: "DELETE", path: "/p", status: 200, invalidated: true},
	"PATCH":                     {method: "PATCH", path: "/p", status: 200, invalidated: true},
	"an unknown method":         {method: "BREW", path: "/p", status: 200, invalidated: true},
	"with a redirection":        {method: "POST", path: "/p", status: 303, invalidated: true},
	"another query":             {method: "POST", path: "/p?a=1", status: 200},
	"another page":              {method: "POST", path: "/q", status: 200},
	"refused":                   {method: "POST", path: "/p", status: 403},
	"failed":                    {method: "POST", path: "/p", status: 500},
	"OPTIONS":                   {method: "OPTIONS", path: "/p", status: 200},
	"HEAD":                      {method: "HEAD", path: "/p", status: 200},
	"QUERY":                     {method: "QUERY", path: "/p", status: 200},
	"SEARCH":                    {method: "SEARCH", path: "/p", status: 200},
	"PROPFIND":                  {method: "PROPFIND", path: "/p", status: 207},
	"REPORT":                    {method: "REPORT", path: "/p", status: 200},
	"Location":                  {method: "POST", path: "/q", status: 201, header: "Location: /p", invalidated: true},
	"a relative Location":       {method: "POST", path: "/q", status: 201, header: "Location: p", invalidated: true},
	"Location with host":        {method: "POST", path: "/q", status: 201, header: "Location: http://" + host + "/p", invalidated: true},
	"Location of another host":  {method: "POST", path: "/q", status: 201, header: "Location: http://other.example/p"},
	"Content-Location":          {method: "POST", path: "/q", status: 200, header: "Content-Location: /p", invalidated: true},
	"Location of a failure":     {method: "POST", path: "/q", status: 400, header: "Location: /p"},
	"Location, another scheme":  {method: "POST", path: "/q", status: 201, header: "Location: https://" + host + "/p"},
	"Location, no URL":          {method: "POST", path: "/q", status: 201, header: "Location: :"},
	"a request from other host": {method: "POST", path: "/p", status: 200, request: []string{"Host: other.example"}},
}

func TestUnsafeRequestsInvalidate(t *testing.T) {
	t.Parallel()
	for name, c := range unsafeRequests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					says("hello", fresh)(w, r)
					return
				}
				if c.header != "" {
					name, value, _ := strings.Cut(c.header, ": ")
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
			})
			f := newFleet(t, 2, Config{}, p)
			f.get("/p")
			f.do(1, c.method, c.path, c.request...)
			calls := p.calls.Load()
			f.get("/p")
			expect.Equal(t, "made anew", p.calls.Load() > calls, c.invalidated)
		})
	}
}

// tagged is a page whose content and tags a test changes.
func tagged() (*page, *string) {
	text := "old"
	p := newPage(nil)
	p.serve = func(w http.ResponseWriter, r *http.Request) {
		says(text+r.Header.Get("X-A"), fresh, "Cache-Tag: t1, t2", "Surrogate-Key: t3 t4", "Vary: X-A")(w, r)
	}
	return p, &text
}

func TestAnInvalidationReachesEveryPageItNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		invalidate func(ctx context.Context, c *Cache) error
		reached    bool
	}{
		"a tag":                      {func(ctx context.Context, c *Cache) error { return c.InvalidateTags(ctx, "t2") }, true},
		"a surrogate key":            {func(ctx context.Context, c *Cache) error { return c.InvalidateTags(ctx, "x", "t4") }, true},
		"another tag":                {func(ctx context.Context, c *Cache) error { return c.InvalidateTags(ctx, "t") }, false},
		"no tag":                     {func(ctx context.Context, c *Cache) error { return c.InvalidateTags(ctx) }, false},
		"a prefix":                   {func(ctx context.Context, c *Cache) error { return c.InvalidatePrefix(ctx, "/a/") }, true},
		"a prefix of all":            {func(ctx context.Context, c *Cache) error { return c.InvalidatePrefix(ctx, "/") }, true},
		"a prefix of something else": {func(ctx context.Context, c *Cache) error { return c.InvalidatePrefix(ctx, "/b/") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, text := tagged()
			f := newFleet(t, 2, Config{Prefixes: []string{"/", "/a/", "/b/"}}, p)
			for i := range 4 {
				expect.Equal(t, "a page", f.do(i%2, "GET", "/a/1").body, "old")
				expect.Equal(t, "a variant", f.do(i%2, "GET", "/a/1", "X-A: v").body, "oldv")
			}
			expect.Equal(t, "calls", p.calls.Load(), 2)
			*text = "new"
			expect.Equal(t, "error", c.invalidate(t.Context(), f.caches[1]), nil)
			want := "old"
			if c.reached {
				want = "new"
			}
			expect.Equal(t, "afterwards", f.get("/a/1").body, want)
			expect.Equal(t, "the variant", f.get("/a/1", "X-A: v").body, want+"v")
			calls := p.calls.Load()
			expect.Equal(t, "again", f.do(1, "GET", "/a/1").body, want)
			expect.Equal(t, "calls for what is stored again", p.calls.Load(), calls)
		})
	}
}

func TestAnImpossibleTagIsAnErrorAndTheOthersAreInvalidated(t *testing.T) {
	t.Parallel()
	p, text := tagged()
	f := newFleet(t, 1, Config{}, p)
	for _, tag := range []string{"", " ", "t1 ", "\tt1", "t1, t2"} {
		*text += "."
		f.get("/a")
		*text = "new" + *text
		if err := f.caches[0].InvalidateTags(t.Context(), tag, "t3"); err == nil {
			t.Errorf("no error for %q", tag)
		}
		expect.Equal(t, "afterwards", f.get("/a").body, *text)
	}
	for _, tag := range []string{"a b", "a,b"} { // by Cache-Tag, and by Surrogate-Key
		expect.Equal(t, "error for "+tag, f.caches[0].InvalidateTags(t.Context(), tag), nil)
	}
}

// RFC 9211 reserves "request" for a request that asked for something unusual.
func TestAPageInvalidatedByTagIsReportedAsAMiss(t *testing.T) {
	t.Parallel()
	p, _ := tagged()
	f := newFleet(t, 1, Config{}, p)
	f.get("/a", "X-A: page")
	f.get("/a", "X-A: variant")
	for field, why := range map[string]string{"X-A: page": "; fwd=uri-miss;", "X-A: variant": "; fwd=vary-miss;"} {
		if status := f.get("/a", field).cacheStatus(); !strings.Contains(status, "; hit") {
			t.Errorf("before, %s: %q", field, status)
		}
		expect.Equal(t, "error", f.caches[0].InvalidateTags(t.Context(), "t1"), nil)
		if status := f.get("/a", field).cacheStatus(); !strings.Contains(status, why) {
			t.Errorf("afterwards, %s: %q", field, status)
		}
		f.get("/a", "X-A: page")
		f.get("/a", "X-A: variant")
	}
}

func TestAPrefixThatIsNotConfiguredIsRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{Prefixes: []string{"/a/"}}, http.NotFoundHandler())
	if err := f.caches[0].InvalidatePrefix(t.Context(), "/a"); err == nil {
		t.Error("no error")
	}
}

// The handler has read the old content when the invalidation comes. Requests from before may get its response, but it must not be stored,
// although nobody knew its tags.
func TestAnInvalidationOvertakesAPageBeingMade(t *testing.T) {
	t.Parallel()
	for name, invalidate := range ways() {
		for _, variant := range []string{"", "v"} {
			t.Run(name+" "+variant, func(t *testing.T) {
				t.Parallel()
				p, text := tagged()
				serve, hold := p.serve, make(chan struct{})
				f := newFleet(t, 2, Config{Prefixes: []string{"/a/"}}, p)
				if variant != "" {
					f.get("/a/1") // the page is there, the variant is made
					<-p.begun
				}
				holding := true
				p.serve = func(w http.ResponseWriter, r *http.Request) {
					if r.Method != http.MethodGet {
						return
					}
					if !holding {
						serve(w, r)
						return
					}
					holding = false
					rec := httptest.NewRecorder()
					serve(rec, r) // it reads the old content now
					p.begun <- struct{}{}
					<-hold
					for name, values := range rec.Header() {
						w.Header()[name] = values
					}
					_, _ = w.Write(rec.Body.Bytes())
				}
				first := f.async(0, "/a/1", "X-A: "+variant)
				<-p.begun
				<-p.begun
				*text = "new"
				invalidate(f)
				close(hold)
				expect.Equal(t, "the request before", (<-first).body, "old"+variant)
				expect.Equal(t, "the request afterwards", f.do(1, "GET", "/a/1", "X-A: "+variant).body, "new"+variant)
				expect.Equal(t, "and again", f.get("/a/1", "X-A: "+variant).body, "new"+variant)
			})
		}
	}
}

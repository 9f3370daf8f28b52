package middleware

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/cacheguard/go/internal/testing/expect"
)

// What does not tell pages apart reaches no handler, in no form.

func TestAHostInOtherLettersIsTheSameToTheHandler(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.Host != host || r.URL.Host != strings.ToLower(r.URL.Host) || r.URL.Scheme != strings.ToLower(r.URL.Scheme) {
			http.Redirect(w, r, "http://"+host+r.URL.Path, http.StatusMovedPermanently)
			return
		}
		_, _ = fmt.Fprint(w, "page")
	})
	named := func(next http.Handler) http.Handler { // a middleware in front that completes the URL
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Host, r.URL.Scheme = r.Host, "HTTP"
			next.ServeHTTP(w, r)
		})
	}
	for _, front := range [][]wrap{nil, {named}} {
		f := inOrder(t, Config{}, front, nil, p)
		f.warm("/", "Host: "+strings.ToUpper(host))
		expect.Equal(t, "the others", f.get("/").StatusCode, http.StatusOK)
	}
}

func TestAFormThatWasReadInFrontHasOnlyWhatCounts(t *testing.T) {
	t.Parallel()
	reads := map[string]func(r *http.Request){
		"FormValue": func(r *http.Request) { _ = r.FormValue("x") },
		"ParseForm": func(r *http.Request) { _ = r.ParseForm() },
		"a field that is set in it": func(r *http.Request) {
			_ = r.ParseForm()
			r.Form.Set("utm_campaign", r.Header.Get("X-Campaign"))
			r.PostForm = url.Values{"utm_campaign": r.Header["X-Campaign"]}
		},
	}
	for name, read := range reads {
		for _, cfg := range []Config{{Key: Key{IgnoreQuery: []string{"utm_*"}}}, {Key: Key{OnlyQuery: []string{"id"}}}} {
			front := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					read(r)
					next.ServeHTTP(w, r)
				})
			}
			p := newPage(func(w http.ResponseWriter, r *http.Request) {
				says(r.FormValue("utm_campaign")+r.PostFormValue("utm_campaign")+r.FormValue("id"), fresh)(w, r)
			})
			f := inOrder(t, cfg, []wrap{front}, nil, p)
			f.warm("/?utm_campaign=evil&id=1", "X-Campaign: evil")
			expect.Equal(t, name, f.get("/?id=1").body, "1")
		}
	}
}

func TestTheNotationOfAFieldReachesNoHandler(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field, first, second string
		cfg                  Config
	}{
		{"Accept", "application/json;q=1", "application/json", Config{}},
		{"Accept", "a/b ;Q=0.500, c/d", "a/b;q=0.5,c/d", Config{}},
		{"Accept", "c/d, a/b", "a/b, c/d", Config{SortAccept: true}},
		{"Accept-Encoding", "GZIP;q=1.0", "gzip", Config{}},
		{"Accept-Language", "DE-at,en", "de-AT, en", Config{}},
		{"Accept-Charset", "UTF-8", "utf-8", Config{}},
		{"X-Shape", "a,b", "a ,  b", Config{}},
		{"Forwarded", "for=evil;host=a", "host=a", Config{}},
		{"Forwarded", "HOST=a ; for=\"[::1]\"", "host=a;by=_x", Config{}},
		{"Forwarded", "for=evil", "by=evil", Config{}},
		{"X-Forwarded-Host", "a,b", "a, b", Config{}},
	} {
		p := newPage(func(w http.ResponseWriter, r *http.Request) {
			says(fmt.Sprintf("%q", r.Header.Values(c.field)), fresh, "Vary: "+c.field)(w, r)
		})
		f := newFleet(t, 1, c.cfg, p)
		f.warm("/", c.field+": "+c.first)
		one := f.get("/", c.field+": "+c.second)
		expect.Equal(t, c.first+" and "+c.second+": one page", p.calls.Load(), 1)
		other := newFleet(t, 1, c.cfg, p).get("/", c.field+": "+c.second)
		expect.Equal(t, c.first+" and "+c.second+": what the handler sees", one.body, other.body)
	}
}

func TestANotationThatCountsIsToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cfg   Config
		lines [2][]string
	}{
		{"a cookie in quotes", Config{Key: Key{Cookies: []string{"theme"}}}, [2][]string{{`Cookie: theme="a"`}, {"Cookie: theme=a"}}},
		{"a cookie that Go does not read", Config{Key: Key{Cookies: []string{"theme"}}}, [2][]string{{"Cookie: theme=\xc3\xa4"}, {"Cookie: x=y"}}},
		{"lines of cookies", Config{}, [2][]string{{"Cookie: a=1", "Cookie: b=2"}, {"Cookie: a=1,b=2"}}},
		{"quoted lines", Config{}, [2][]string{{`X-Shape: "a"`, "X-Shape: b"}, {`X-Shape: "a",b`}}},
	} {
		p := newPage(func(w http.ResponseWriter, r *http.Request) {
			vary := "Vary: Cookie, X-Shape"
			if c.cfg.Key.Cookies != nil {
				vary = "Vary: X-Shape"
			}
			says(fmt.Sprintf("%q %q", r.Header["Cookie"], r.Header["X-Shape"]), fresh, vary)(w, r)
		})
		f := newFleet(t, 1, c.cfg, p)
		f.warm("/", c.lines[0]...)
		f.warm("/", c.lines[1]...)
		expect.Equal(t, c.name, p.calls.Load(), 2)
	}
}

func TestTheOrderOfParametersReachesNoHandlerIfItDoesNotCount(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{SortQuery: true}, newPage(echoes))
	f.warm("/?b=2&a=1")
	expect.Equal(t, "sorted", f.get("/?a=1&b=2").body, "/?a=1&b=2 /?a=1&b=2")
}

func TestAMethodIsRecognizedInEveryNotationOfItsParameter(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{}, p)
	for _, query := range []string{"_method=DELETE", "_m%65thod=DELETE", "%5Fmethod=DELETE", "a=1;_method=DELETE"} {
		for range 2 {
			expect.Equal(t, query, f.get("/?"+query).cacheStatus(), "cacheguard; fwd=bypass")
		}
	}
}

// What decides about a response is what the client gets: what was set in front, and what the handler has made of it.

func TestAVaryThatWasSetInFrontTellsPagesApart(t *testing.T) {
	t.Parallel()
	german := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Vary", "Accept-Language")
			next.ServeHTTP(w, r)
		})
	}
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		says(r.Header.Get("Accept-Language"), fresh, "Vary: X-Other")(w, r)
	})
	f := inOrder(t, Config{}, []wrap{german}, nil, p)
	for _, language := range []string{"de", "en", "de", "en"} {
		a := f.get("/", "Accept-Language: "+language)
		expect.Equal(t, "the page", a.body, language)
		expect.Equal(t, "Vary", strings.Join(a.Header["Vary"], ", "), "Accept-Language, X-Other")
		f.stored()
	}
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

// A middleware may set it for some requests only.
func TestARequestWithAVaryInFrontGetsNoPageThatWasMadeWithoutIt(t *testing.T) {
	t.Parallel()
	some := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Lang") != "" {
				w.Header().Set("Vary", "X-Lang")
			}
			next.ServeHTTP(w, r)
		})
	}
	p := newPage(func(w http.ResponseWriter, r *http.Request) { says(r.Header.Get("X-Lang"), fresh)(w, r) })
	f := inOrder(t, Config{}, []wrap{some}, nil, p)
	for _, language := range []string{"", "de", "", "de", "en"} {
		expect.Equal(t, "the page", f.get("/", "X-Lang: "+language).body, language)
		f.stored()
	}
	expect.Equal(t, "calls", p.calls.Load(), 3)
}

func TestWhatWasSetInFrontDecidesWhetherAPageIsStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		front, handler []string // fields that are set; -Name: removed
		cfg            Config
		stored         bool
	}{
		"a lifetime in front":          {[]string{fresh}, nil, Config{}, true},
		"private in front":             {[]string{"Cache-Control: private"}, nil, Config{DefaultTTL: time.Minute}, false},
		"no-store in front, replaced":  {[]string{"Cache-Control: no-store"}, []string{fresh}, Config{}, true},
		"no-store in front, removed":   {[]string{"Cache-Control: no-store"}, []string{"-Cache-Control"}, Config{DefaultTTL: time.Minute}, true},
		"for CDNs, in front":           {[]string{"CDN-Cache-Control: no-store"}, []string{fresh}, Config{}, false},
		"Vary: * in front":             {[]string{"Vary: *"}, []string{fresh}, Config{}, false},
		"Vary: * in front, removed":    {[]string{"Vary: *"}, []string{fresh, "-Vary"}, Config{}, true},
		"a cookie of the client's own": {[]string{"Set-Cookie: session=1"}, []string{fresh}, Config{}, true},
		"two cookies":                  {[]string{"Set-Cookie: session=1"}, []string{fresh, "+Set-Cookie: a=b"}, Config{}, false},
		"expired in front":             {[]string{"Expires: 0"}, nil, Config{DefaultTTL: time.Minute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(func(w http.ResponseWriter, r *http.Request) { set(w, c.handler); _, _ = fmt.Fprint(w, "page") })
			f := inOrder(t, c.cfg, []wrap{sets(c.front...)}, nil, p)
			f.warm("/")
			f.get("/")
			expect.Equal(t, "stored", p.calls.Load() == 1, c.stored)
		})
	}
}

// set sets fields; with a minus, it removes one, with a plus, it adds one.
func set(w http.ResponseWriter, lines []string) {
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		switch name[0] {
		case '-':
			w.Header().Del(name[1:])
		case '+':
			w.Header().Add(name[1:], value)
		default:
			w.Header().Set(name, value)
		}
	}
}

func sets(lines ...string) wrap {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			set(w, lines)
			next.ServeHTTP(w, r)
		})
	}
}

// Each client has what was set in front for it, and what the handler made of that.
func TestWhatWasSetInFrontIsSentToEachClientAsItsOwn(t *testing.T) {
	t.Parallel()
	front := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"X-Request-Id", "Set-Cookie", "Link", "X-Frame-Options", "X-Replaced"} {
				w.Header().Set(name, r.Header.Get("X-Id"))
			}
			next.ServeHTTP(w, r)
		})
	}
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		set(w, []string{fresh, "-X-Frame-Options", "+Link: handler", "X-Replaced: handler", "X-New: handler"})
		w.WriteHeader(http.StatusOK)
	})
	for name, fronts := range map[string][]wrap{"plain": {front}, "behind a recoverer": {chimiddleware.Recoverer, front}} {
		f := inOrder(t, Config{}, fronts, nil, p)
		p.calls.Store(0)
		for _, id := range []string{"a", "b", "c"} {
			a := f.get("/", "X-Id: "+id)
			f.stored()
			got := fmt.Sprint(a.Header["X-Request-Id"], a.Header["Set-Cookie"], a.Header["Link"], a.Header["X-Frame-Options"], a.Header["X-Replaced"], a.Header["X-New"])
			expect.Equal(t, name+" "+id, got, fmt.Sprintf("[%s] [%s] [%s handler] [] [handler] [handler]", id, id, id))
		}
		expect.Equal(t, "calls", p.calls.Load(), 1)
	}
}

func TestTagsThatWereSetInFrontInvalidate(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := inOrder(t, Config{}, []wrap{sets("Cache-Tag: front")}, nil, p)
	f.warm("/")
	expect.ErrorIs(t, f.caches[0].InvalidateTags(t.Context(), "front"))
	f.get("/")
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

func TestPagesInSlicesAreSelectedByAVaryThatWasSetInFront(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 3000)
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"`+r.Header.Get("X-Lang")+`"`)
		http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader(body))
	})
	f := inOrder(t, Config{MaxBody: 1000, SliceBytes: 1000}, []wrap{sets("Vary: X-Lang", fresh)}, nil, p)
	for range 2 {
		for _, language := range []string{"de", "en"} {
			a := f.get("/film", "X-Lang: "+language)
			expect.Equal(t, "bytes", len(a.body), len(body))
			expect.Equal(t, "of the language", a.Header.Get("Etag"), `"`+language+`"`)
			f.stored()
		}
	}
	before := p.calls.Load()
	f.get("/film", "X-Lang: de")
	expect.Equal(t, "calls for a hit", p.calls.Load()-before, 0)
}

// docs/http.md recommends both.
func TestAHeadIsAnsweredBehindWith(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	r := chi.NewRouter()
	r.Use(chimiddleware.GetHead)
	r.With(f.caches[0].Handler).Get("/a", p.ServeHTTP)
	f.front(r)
	expect.Equal(t, "HEAD", f.do(0, http.MethodHead, "/a").StatusCode, http.StatusOK)
	f.stored()
	expect.Equal(t, "the page is there", isHit(f.get("/a")), true)
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

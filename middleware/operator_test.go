package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// echoes shows what it sees of the request, for a page that lives a minute.
func echoes(w http.ResponseWriter, r *http.Request) {
	says(r.URL.RequestURI()+" "+r.RequestURI, fresh)(w, r)
}

func TestParametersThatDoNotCountShareAPageAndStayHidden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key   Key
		first string
		sees  string // the handler, of the first one
		same  []string
		other []string
	}{
		"ignored": {
			Key{IgnoreQuery: []string{"utm_*", "gclid"}}, "/a?utm_source=evil&id=1&gclid=x", "/a?id=1",
			[]string{"/a?id=1", "/a?id=1&utm_campaign=&%75tm_x=1", "/a?gclid&id=1"}, []string{"/a", "/a?id=2", "/a?id=1&Gclid=1", "/a?id=1&xutm_=1"},
		},
		"ignored, and nothing else": {
			Key{IgnoreQuery: []string{"utm_*"}}, "/a?utm_source=evil", "/a", []string{"/a", "/a?utm_x"}, []string{"/a?", "/a?id=1"},
		},
		"a semicolon, which handlers read in different ways": {
			Key{IgnoreQuery: []string{"utm_*"}}, "/a?utm_x=1;id=evil&id=1", "/a?id=1", []string{"/a?id=1"}, []string{"/a?id=1;utm_x=2"},
		},
		"the only ones": {
			Key{OnlyQuery: []string{"id", "page*"}}, "/a?x=1&id=1&page_size=7", "/a?id=1&page_size=7",
			[]string{"/a?id=1&page_size=7", "/a?id=1&y&page_size=7"}, []string{"/a?page_size=7&id=1", "/a?id=1", "/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(echoes)
			f := newFleet(t, 1, Config{Key: c.key}, p)
			expect.Equal(t, "first", f.get(c.first).body, c.sees+" "+c.sees)
			for _, path := range c.same {
				expect.Equal(t, path, f.get(path).body, c.sees+" "+c.sees)
			}
			expect.Equal(t, "calls", p.calls.Load(), 1)
			for _, path := range c.other {
				expect.Equal(t, path, f.get(path).body == c.sees+" "+c.sees, false)
			}
			expect.Equal(t, "POST", f.do(0, http.MethodPost, c.first).body, c.first+" "+c.first)
			expect.Equal(t, "calls after the POST", p.calls.Load(), int64(2+len(c.other)))
			f.get(c.same[0])
			expect.Equal(t, "it was invalidated", p.calls.Load(), int64(3+len(c.other)))
			if err := f.invalidate(c.first); err != nil {
				t.Fatal(err)
			}
			f.get(c.same[0])
			expect.Equal(t, "and again", p.calls.Load(), int64(4+len(c.other)))
		})
	}
}

func TestCookiesAndClaimsThatAreNamedTellPagesApart(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{Key: Key{
		Cookies: []string{"theme"}, Claim: func(r *http.Request) string { return r.Header.Get("X-Plan") },
	}}, p)
	calls := int64(0)
	for _, c := range []struct {
		isNew  bool
		header []string
	}{
		{true, nil},
		{false, []string{"Cookie: session=1"}},
		{true, []string{"Cookie: theme=dark"}},
		{false, []string{"Cookie: session=2; theme=dark"}},
		{true, []string{"Cookie: theme=light"}},
		{true, []string{"Cookie: theme="}},
		{true, []string{"Cookie: theme=dark; theme=light"}},
		{true, []string{"X-Plan: pro"}},
		{true, []string{"X-Plan: pro", "Cookie: theme=dark"}},
		{false, []string{"X-Plan: pro", "Cookie: x=y; theme=dark"}},
		{true, []string{"X-Plan: " + strings.Repeat("x", 3000)}},
	} {
		if c.isNew {
			calls++
		}
		for range 2 {
			f.get("/", c.header...)
			expect.Equal(t, fmt.Sprint(c.header), p.calls.Load(), calls)
		}
	}
}

func TestBypassHandsRequestsToTheHandlerEachTime(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{Bypass: func(r *http.Request) bool { return r.URL.Path == "/poll" }}, p)
	for range 3 {
		f.get("/")
		expect.Equal(t, "status", f.get("/poll").cacheStatus(), "cacheguard; fwd=bypass")
	}
	expect.Equal(t, "calls", p.calls.Load(), 4)
	expect.Equal(t, "only-if-cached", f.get("/poll", "Cache-Control: only-if-cached").StatusCode, http.StatusGatewayTimeout)
}

// Redis works, so an operator must not look there.
func TestAPageThatGoesPastTheCacheSaysWhy(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleetOn(t, server, 1, Config{}, cacheguard.Config{Gate: func(_ context.Context, key string) error {
		if strings.Contains(key, "/refused") {
			return errors.New("not yet")
		}
		return nil
	}}, says("page", fresh))
	f.get("/")
	f.guards[0].Bypass(true)
	expect.Equal(t, "Cache-Status", f.get("/").withoutTTL(), "cacheguard; fwd=uri-miss; fwd-status=200; detail=bypass")
	f.guards[0].Bypass(false)
	expect.Equal(t, "of a page that the gate refuses", f.get("/refused").withoutTTL(), "cacheguard; fwd=uri-miss; fwd-status=200; detail=bypass")
	expect.Equal(t, "results", f.count(Bypassed), 2)
	server.Kill()
	expect.Equal(t, "without Redis", f.get("/").withoutTTL(), "cacheguard; fwd=uri-miss; fwd-status=200; detail=redis")
}

// Nothing is stored at all, so it does not matter what else is in the way.
func TestABypassedResponseThatCouldNotBeStoredSaysThatItIsBypassed(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"Limits refuse it": says("page", fresh),
		"it is private":    says("page", "Cache-Control: private"),
	} {
		f := newFleetOn(t, shared, 1, Config{Limits: Limits{Admit: time.Minute}}, cacheguard.Config{}, handler)
		f.guards[0].Bypass(true)
		for _, field := range []string{"X-Any: a", "Range: bytes=0-1"} {
			status := f.get("/?a=1", field).cacheStatus()
			expect.Equal(t, name+", "+field+": "+status, strings.HasSuffix(status, "; detail=bypass"), true)
		}
	}
}

func TestErrorsAreStoredAsTheConfigSays(t *testing.T) {
	t.Parallel()
	errorPage := func(status int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for _, line := range header {
				name, value, _ := strings.Cut(line, ": ")
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
		}
	}
	set := map[int]time.Duration{404: time.Hour, 503: 2 * time.Second}
	for name, c := range map[string]struct {
		set    map[int]time.Duration
		serve  http.HandlerFunc
		stored bool
		header []string
	}{
		"what it says":                 {nil, errorPage(400, fresh), true, nil},
		"one that is not listed":       {set, errorPage(400, fresh), false, nil},
		"none":                         {map[int]time.Duration{}, errorPage(404, fresh), false, nil},
		"one that is listed":           {set, errorPage(404, fresh), true, nil},
		"without a lifetime":           {set, errorPage(503), true, nil},
		"no-store":                     {set, errorPage(503, "Cache-Control: no-store"), false, nil},
		"no-cache":                     {set, errorPage(503, "Cache-Control: no-cache"), false, nil},
		"a cookie":                     {set, errorPage(503, "Set-Cookie: a=b"), false, nil},
		"to somebody who is logged in": {set, errorPage(503), false, []string{"Cookie: session=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(c.serve)
			f := newFleet(t, 1, Config{StoreErrors: c.set}, p)
			f.get("/", c.header...)
			f.get("/", c.header...)
			expect.Equal(t, "stored", p.calls.Load() == 1, c.stored)
		})
	}
}

func TestAnErrorIsStoredForTheConfiguredTimeAtMost(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600, stale-while-revalidate=3600, stale-if-error=3600")
		w.Header().Set("Age", "100")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	f := newFleet(t, 1, Config{StoreErrors: map[int]time.Duration{503: 5 * time.Second}}, p)
	status := f.get("/").cacheStatus()
	expect.Equal(t, status, strings.Contains(status, "ttl=5; stored") || strings.Contains(status, "ttl=4; stored"), true)
	p.serve = says("page", fresh)
	redistest.Await(t, "it is over", func() bool { return f.get("/").body == "page" })
}

// Many handlers say how long their page lives before they fail to make it.
func TestAnErrorThatSaysThatItLastsIsSoonForgottenByDefault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg    Config
		status int
		lasts  bool
	}{
		"a failure":            {Config{}, 500, false},
		"a bad request":        {Config{}, 400, false},
		"what is gone":         {Config{}, 410, true},
		"not there":            {Config{}, 404, true},
		"what StoreErrors has": {Config{StoreErrors: map[int]time.Duration{500: time.Hour}}, 500, true},
		"what StatusTTL has":   {Config{StatusTTL: map[int]time.Duration{500: time.Hour}}, 500, true},
	} {
		p := newPage(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=3600, stale-while-revalidate=3600")
			http.Error(w, "failed", c.status)
		})
		f := newFleet(t, 1, c.cfg, p)
		var ttl int
		_, after, stored := strings.Cut(f.get("/").cacheStatus(), "ttl=")
		_, _ = fmt.Sscan(strings.TrimRight(after, "; stored"), &ttl)
		expect.Equal(t, name+": stored", stored, true)
		expect.Equal(t, fmt.Sprint(name, ": for ", ttl, " s"), ttl > 10, c.lasts)
	}
}

// A hundred wait for a page that fails.
func TestOneCallOfAFailingHandlerAnswersAllWhoWait(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusServiceUnavailable) }).held()
	f := newFleet(t, 2, Config{StoreErrors: map[int]time.Duration{503: time.Minute}}, p)
	var all []<-chan answer
	for i := range 100 {
		all = append(all, f.async(i%2, "/"))
	}
	f.joins(98)
	f.waits("/", 1)
	close(p.hold)
	for _, c := range all {
		a := <-c
		expect.Equal(t, "answer", fmt.Sprintf("%d %s", a.StatusCode, a.body), "503 down\n")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

func TestAnErrorDoesNotReplaceAPageThatMayBeServed(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{StoreErrors: map[int]time.Duration{501: time.Minute}}, p)
	f.warm("/")
	p.serve = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusNotImplemented) }
	expect.Equal(t, "a client that insists", f.get("/", "Cache-Control: no-cache").StatusCode, http.StatusNotImplemented)
	expect.Equal(t, "the others", f.get("/").body, "page")
}

func TestLifetimesByStatus(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		status := 0
		_, _ = fmt.Sscan(r.URL.Path[1:], &status)
		w.WriteHeader(status)
	})
	f := newFleet(t, 1, Config{DefaultTTL: time.Minute, StatusTTL: map[int]time.Duration{302: time.Hour, 301: -1, 404: 2 * time.Hour}}, p)
	for path, want := range map[string]time.Duration{"/200": time.Minute, "/302": time.Hour, "/301": 0, "/404": 2 * time.Hour, "/307": 0} {
		status, ttl := f.get(path).cacheStatus(), 0
		if _, after, ok := strings.Cut(status, "ttl="); ok {
			_, _ = fmt.Sscan(strings.TrimRight(after, "; stored"), &ttl)
		}
		if left := time.Duration(ttl) * time.Second; left > want || left < want-time.Minute+time.Second || want == 0 && !strings.Contains(status, "no-lifetime") {
			t.Errorf("%s: %s, want %v", path, status, want)
		}
	}
}

func TestHiddenFieldsReachNoClient(t *testing.T) {
	t.Parallel()
	serve := says("page", fresh, "Cache-Tag: a", "Surrogate-Key: b", "X-Kept: yes", `Etag: "1"`)
	p := newPage(serve)
	f := newFleet(t, 1, Config{HideFields: []string{"cache-tag", "Surrogate-Key", "Cache-Status"}}, p)
	check := func(what string, a answer) {
		t.Helper()
		for _, name := range []string{"Cache-Tag", "Surrogate-Key", "Cache-Status"} {
			if got := a.Header.Get(name); got != "" {
				t.Errorf("%s: %s: %s", what, name, got)
			}
		}
		expect.Equal(t, what, a.Header.Get("X-Kept"), "yes")
	}
	check("made", f.get("/"))
	check("a hit", f.get("/"))
	check("a part", f.get("/", "Range: bytes=0-1"))
	check("POST", f.do(0, http.MethodPost, "/other"))
	check("for one client", f.get("/", "If-Match: *"))
	check("a 304", f.get("/", `If-None-Match: "1"`))
	if err := f.caches[0].InvalidateTags(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	before := p.calls.Load()
	p.serve = says("private", "Cache-Control: private", "Cache-Tag: a", "X-Kept: yes")
	check("not stored", f.get("/"))
	expect.Equal(t, "the tag counts", p.calls.Load(), before+1)
}

func TestPurging(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh, "Cache-Tag: shoes"))
	f := newFleet(t, 1, Config{}, p)
	purging := f.caches[0].PurgeHandler(func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer t" })
	said := ""
	purge := func(h http.Handler, method, path string, header ...string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.Host = host
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		said = w.Header().Get("Cache-Status")
		return w.Code
	}
	may, unknown := "Authorization: Bearer t", `cacheguard; detail=nothing-there; key="hats"`
	for i, c := range []struct {
		path   string
		header []string
		status int
		gone   bool
	}{
		{"/a", []string{may}, http.StatusNoContent, true},
		{"/other", []string{may}, http.StatusNoContent, false},
		{"/a", nil, http.StatusForbidden, false},
		{"/", []string{may, "Cache-Tag: hats, shoes"}, http.StatusNoContent, true},
		{"/a", []string{may, "Surrogate-Key: hats"}, http.StatusNoContent, false},
		{"/a", []string{may, "Cache-Tag: shoe, shoes"}, http.StatusNoContent, true},
		{"/a", []string{may, "Cache-Tag: "}, http.StatusBadRequest, false},
	} {
		f.warm("/a")
		before := p.calls.Load()
		expect.Equal(t, fmt.Sprint(i, ": status"), purge(purging, "PURGE", c.path, c.header...), c.status)
		nothing := map[int]string{1: "cacheguard; detail=nothing-there", 3: unknown, 4: unknown, 5: `cacheguard; detail=nothing-there; key="shoe"`}
		expect.Equal(t, fmt.Sprint(i, ": nothing was there"), said, nothing[i])
		f.get("/a")
		expect.Equal(t, fmt.Sprint(i, ": gone"), p.calls.Load() > before, c.gone)
	}
	expect.Equal(t, "another method", purge(purging, http.MethodDelete, "/a", may), http.StatusMethodNotAllowed)
	expect.Equal(t, "nobody may", purge(f.caches[0].PurgeHandler(nil), "PURGE", "/a", may), http.StatusForbidden)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "PURGE", "http://"+host+"/a", nil)
	w := httptest.NewRecorder()
	f.caches[0].PurgeHandler(func(*http.Request) bool { return true }).ServeHTTP(w, r)
	expect.Equal(t, "a client that has left", w.Code, http.StatusNoContent) // it is sent all the same
}

func TestMethodsThatInvalidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		methods []string
		by      []string // of POST, PURGE and LINK
	}{
		"as the RFC has it": {nil, []string{"POST", "PURGE", "LINK"}},
		"some":              {[]string{"POST"}, []string{"POST"}},
		"none":              {[]string{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(says("page", fresh))
			f := newFleet(t, 1, Config{InvalidatingMethods: c.methods}, p)
			for _, method := range []string{"POST", "PURGE", "LINK"} {
				f.warm("/")
				f.do(0, method, "/")
				before := p.calls.Load()
				f.get("/")
				expect.Equal(t, method, p.calls.Load() > before, slices.Contains(c.by, method))
			}
		})
	}
}

func TestLimitsOfVariantsAndPages(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh, "Vary: User-Agent"))
	f := newFleet(t, 1, Config{Limits: Limits{Variants: 3, Pages: 2, URL: 100}}, p)
	for i := range 10 {
		agent := fmt.Sprint("User-Agent: ", i)
		f.get("/", agent)
		before := p.calls.Load()
		status := f.get("/", agent).cacheStatus()
		expect.Equal(t, agent+": stored", p.calls.Load() == before, i < 4)
		expect.Equal(t, agent+": why", strings.Contains(status, "detail=limit"), i >= 4)
	}
	for i := range 5 {
		path := fmt.Sprint("/search?q=", i)
		f.get(path)
		before := p.calls.Load()
		f.get(path)
		expect.Equal(t, path, p.calls.Load() == before, i < 2)
	}
	expect.Equal(t, "a long URL", f.get("/"+strings.Repeat("x", 100)).cacheStatus(), "cacheguard; fwd=bypass; detail=limit")
	redistest.Await(t, "all are counted", func() bool { return f.count(Refused) == 12+6+1 })
}

func TestPagesAreStoredWhenTheyAreAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		router interface {
			http.Handler
			Handle(pattern string, h http.Handler)
		}
		routes []string
		calls  map[string]int64
	}{
		"chi":           {chi.NewRouter(), []string{"/", "/about", "/products/{id}", "/files/*"}, map[string]int64{"/": 1, "/?x=1": 2, "/about": 1, "/about?x=1": 2, "/products/1": 2, "/files/": 2}},
		"http.ServeMux": {http.NewServeMux(), []string{"/", "/about/{$}", "/products/{id}"}, map[string]int64{"/": 2, "/x": 2, "/about/": 1, "/about/?x=1": 2, "/products/1": 2}},
	} {
		p := newPage(says("page", fresh))
		f := newFleet(t, 1, Config{Limits: Limits{Admit: time.Hour}}, http.NotFoundHandler())
		for _, route := range c.routes {
			c.router.Handle(route, f.caches[0].Handler(p))
		}
		f.front(c.router)
		for path, calls := range c.calls {
			p.calls.Store(0)
			status := f.get(path).cacheStatus()
			expect.Equal(t, name+path+": why", strings.Contains(status, "detail=first"), calls > 1)
			f.get(path)
			f.get(path)
			expect.Equal(t, name+path, p.calls.Load(), calls)
		}
	}
}

// A crowd that asks for a new page at once has it made once for all.
func TestACrowdThatAsksForANewPageHasItMadeOnce(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh)).held()
	f := newFleet(t, 1, Config{Limits: Limits{Admit: time.Hour}}, p)
	var all []<-chan answer
	for range 100 {
		all = append(all, f.async(0, "/new?q=1"))
	}
	f.joins(99)
	close(p.hold)
	for _, c := range all {
		expect.Equal(t, "page", (<-c).body, "page")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

func TestWhatIsNotStoredCostsRedisLittle(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("long/", 1500) + "?q="
	for name, c := range map[string]struct {
		cfg   Config
		serve http.HandlerFunc
		most  int64 // bytes for a URL
	}{
		"private":           {Config{}, says("page", "Cache-Control: private", "Cache-Tag: a"), 1000},
		"no lifetime":       {Config{}, says("page"), 1000},
		"a cookie":          {Config{}, says("page", fresh, "Set-Cookie: a=b"), 1000},
		"too large":         {Config{MaxBody: 1}, says("page", fresh), 1000},
		"an error":          {Config{}, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }, 0},
		"beyond the limit":  {Config{Limits: Limits{Pages: 1}}, says("page", fresh), 0},
		"the first request": {Config{Limits: Limits{Admit: time.Hour}}, says("page", fresh), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const pages = 10
			p := newPage(c.serve)
			f := newFleet(t, 1, c.cfg, p)
			f.warm(long + "first")
			before := f.memory()
			for i := range pages {
				f.warm(fmt.Sprint(long, i))
			}
			expect.Equal(t, "calls", p.calls.Load(), pages+1)
			if each := (f.memory() - before) / pages; each > c.most {
				t.Errorf("a URL takes %d bytes", each)
			}
		})
	}
}

// memory is how many bytes the fleet's keys take in Redis.
func (f *fleet) memory() (bytes int64) {
	f.t.Helper()
	rdb := shared.Client(f.t)
	keys, err := rdb.Keys(f.t.Context(), f.prefix+"*").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, key := range keys {
		bytes += rdb.MemoryUsage(f.t.Context(), key).Val() // 0: it has expired since
	}
	return bytes
}

func TestLongURLsHavePages(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{}, p)
	path := "/" + strings.Repeat("long/", 1500)
	for _, end := range []string{"a", "a", "b"} {
		f.warm(path + end)
	}
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

func TestGroupsOfAnOrigin(t *testing.T) {
	t.Parallel()
	many := make([]string, 31) // caches must bear 32 groups of 32 characters: section 4
	for i := range many {
		many[i] = fmt.Sprintf("%q", fmt.Sprintf("%032d", i))
	}
	p := newPage(nil)
	p.serve = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Group-Invalidation", r.Header.Get("Groups"))
		if r.Method == http.MethodGet {
			says("page", fresh, `Cache-Groups: "shoes", "a, \"b\"";x="1,2";y, `+strings.Join(many[1:], ", "))(w, r)
		}
	}
	f := newFleet(t, 2, Config{}, p)
	for i, c := range []struct {
		method, host, groups string
		gone                 bool
	}{
		{"POST", host, `"shoes"`, true},
		{"POST", host, `"hats", "a, \"b\"";q=1`, true},
		{"POST", host, `"hats"`, false},
		{"POST", host, `shoes`, false},
		{"POST", host, `"shoes`, false},
		{"POST", host, `"shoes",`, false},
		{"POST", "other.example", `"shoes"`, false},
		{"OPTIONS", host, `"shoes"`, false},
		{"GET", host, `"shoes"`, false},
		{"DELETE", host, `"shoes"`, true},
		{"POST", host, `"Shoes"`, false},
		{"POST", host, strings.Join(many, ", ") + `, "shoes"`, true},
		{"POST", host, many[30], true},
		{"POST", host, `shoes, "shoes"`, false},
		{"POST", host, `("shoes")`, false},
	} {
		f.warm("/list")
		before := p.calls.Load()
		f.do(1, c.method, "/items", "Groups: "+c.groups, "Host: "+c.host)
		f.get("/list")
		expect.Equal(t, fmt.Sprint(i, c), p.calls.Load() == before+2, c.gone)
	}
}

func TestBadSettingsForOperatorsAreNamed(t *testing.T) {
	t.Parallel()
	_, err := New(nil, Config{
		Key:         Key{IgnoreQuery: []string{"a", ""}, OnlyQuery: []string{"b"}, Cookies: []string{"a b"}},
		Limits:      Limits{URL: -1, Variants: -1, Pages: -1, Admit: -time.Second},
		StoreErrors: map[int]time.Duration{200: time.Second, 404: -1}, StatusTTL: map[int]time.Duration{99: 1, 404: time.Second}, HideFields: []string{"a b"},
		KeyFields: []string{"X-Host"}, NotKeyFields: []string{"x-host"}, InvalidatingMethods: []string{"GET"},
	})
	for _, field := range []string{
		"Key.IgnoreQuery", "Key.OnlyQuery", "Key.Cookies", "Limits.URL", "Limits.Variants", "Limits.Pages", "Limits.Admit", "StoreErrors", "StatusTTL", "HideFields", "NotKeyFields", "InvalidatingMethods",
	} {
		if !strings.Contains(fmt.Sprint(err), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	_, err = New(nil, Config{Key: Key{IgnoreQuery: []string{"utm_*", "a*b"}, OnlyQuery: nil}})
	expect.Equal(t, "a star in the middle", strings.Contains(fmt.Sprint(err), `Key.IgnoreQuery: "a*b"`), true)
}

// Whoever waits for the page has a 504 then, or still waits for its own handler.
func TestAHandlerThatIgnoresItsContextIsShownWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		guard := inBubble(t, cacheguard.Config{
			LoadTimeout: 5 * time.Second, SlowLoad: time.Minute, Logger: slog.New(slog.NewTextHandler(&said, nil)),
		})
		cache, err := New(guard, Config{})
		expect.ErrorIs(t, err)
		hang := make(chan struct{})
		handler := cache.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
		go handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/slow", nil))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		expect.Equal(t, "loads", guard.Stats().Loading, 1)
		if line := said.String(); !strings.Contains(line, "still runs") || !strings.Contains(line, "/slow") || !strings.Contains(line, "LoadTimeout") {
			t.Error(line)
		}
		close(hang)
		synctest.Wait()
		expect.Equal(t, "loads at the end", guard.Stats().Loading, 0)
	})
}

// An operator gives these names to cacheguardctl, as docs/at-3am.md says.
func TestPagesAreInvalidatedThroughTheGuardByTheirNames(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh, "Cache-Tag: product-7"))
	f := newFleet(t, 1, Config{Prefixes: []string{"/products/"}}, p)
	guard, ctx := f.guards[0], t.Context()
	for _, c := range []struct {
		name  string
		err   func() error
		calls int
	}{
		{"a tag of values", func() error { return guard.InvalidateTags(ctx, "product-7") }, 0},
		{"a tag of pages", func() error { return guard.InvalidateTags(ctx, "tag:product-7") }, 1},
		{"a prefix", func() error { return guard.InvalidateTags(ctx, "path:/products/") }, 1},
		{"a page", func() error { return guard.Invalidate(ctx, "page://"+host+"/products/7") }, 1},
	} {
		f.warm("/products/7")
		before := p.calls.Load()
		expect.ErrorIs(t, c.err())
		f.get("/products/7")
		expect.Equal(t, "calls after "+c.name, int(p.calls.Load()-before), c.calls)
	}
}

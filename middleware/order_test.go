package middleware

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/cacheguard/go/internal/testing/expect"
)

// docs/http.md has a table of where the cache stands among middlewares. Each of its rows is tried here, or where a comment says so.

type wrap = func(http.Handler) http.Handler

// inOrder is an instance with middlewares in front of the cache, and behind it.
func inOrder(t *testing.T, cfg Config, front, behind []wrap, p *page) *fleet {
	t.Helper()
	f := newFleet(t, 1, cfg, http.NotFoundHandler())
	r := chi.NewRouter()
	r.Use(slices.Concat(front, []wrap{f.caches[0].Handler}, behind)...)
	r.Handle("/*", p)
	f.front(r)
	return f
}

func isHit(a answer) bool { return strings.HasPrefix(a.cacheStatus(), "cacheguard; hit") }

func TestWhoMayAskIsDecidedInFrontForHitsToo(t *testing.T) {
	t.Parallel()
	var let atomic.Bool
	let.Store(true)
	limit := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !let.Load() {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	const secret = "Authorization: Basic YTpi" // a:b
	p := newPage(says("page", "Cache-Control: public, max-age=60"))
	f := inOrder(t, Config{}, []wrap{limit, chimiddleware.BasicAuth("", map[string]string{"a": "b"})}, nil, p)
	f.warm("/", secret)
	expect.Equal(t, "who may, a hit", isHit(f.get("/", secret)), true)
	expect.Equal(t, "who may not", f.get("/").StatusCode, http.StatusUnauthorized)
	let.Store(false)
	expect.Equal(t, "too often", f.get("/", secret).StatusCode, http.StatusTooManyRequests)
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

func TestTheAddressOfAClientTellsNoPagesApart(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]wrap{
		"ClientIPFromXFF":               chimiddleware.ClientIPFromXFF("127.0.0.0/8"),
		"ClientIPFromXFFTrustedProxies": chimiddleware.ClientIPFromXFFTrustedProxies(1),
		"ClientIPFromHeader":            chimiddleware.ClientIPFromHeader("X-Real-Ip"),
		"ClientIPFromRemoteAddr":        chimiddleware.ClientIPFromRemoteAddr,
		"RealIP":                        chimiddleware.RealIP, //nolint:staticcheck // some services still have it
	} {
		p := newPage(says("page", fresh))
		f := inOrder(t, Config{}, []wrap{address}, nil, p)
		f.warm("/", "X-Forwarded-For: 192.0.2.1", "X-Real-Ip: 192.0.2.1")
		expect.Equal(t, name+": another client", isHit(f.get("/", "X-Forwarded-For: 192.0.2.2", "X-Real-Ip: 192.0.2.2")), true)
	}
}

func TestCompressionStandsBehindTheCache(t *testing.T) {
	t.Parallel()
	const packed = "Accept-Encoding: gzip"
	whole := strings.Repeat("page ", 1000)
	varies := chimiddleware.SetHeader("Vary", "Accept-Encoding")
	for name, c := range map[string]struct {
		front, behind []wrap
		plain         bool // what a client with gzip gets of a page that one without has caused
		calls         int64
	}{
		"behind":                    {nil, []wrap{chimiddleware.Compress(5)}, true, 1},
		"behind, with Vary for all": {nil, []wrap{varies, chimiddleware.Compress(5)}, false, 2},
		"in front":                  {[]wrap{chimiddleware.Compress(5)}, nil, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(says(whole, fresh, "Content-Type: text/html"))
			f := inOrder(t, Config{}, c.front, c.behind, p)
			f.warm("/a")
			f.warm("/a", packed)
			a := f.get("/a", packed)
			expect.Equal(t, "a hit", isHit(a), true)
			expect.Equal(t, "plain", a.Header.Get("Content-Encoding") == "", c.plain)
			expect.Equal(t, "the page", unpacked(t, a), whole)
			expect.Equal(t, "without gzip", f.get("/a").body, whole)
			expect.Equal(t, "calls", p.calls.Load(), c.calls)
			f.warm("/b", packed)
			expect.Equal(t, "the other way round", f.get("/b").body, whole)
			expect.Equal(t, "with gzip", unpacked(t, f.get("/b", packed)), whole)
		})
	}
}

func unpacked(t *testing.T, a answer) string {
	t.Helper()
	if a.Header.Get("Content-Encoding") == "" {
		return a.body
	}
	r, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Behind the cache: TestAPageWhoseHandlerFailsInTheMiddleIsNotStored.
func TestRecovererInFrontSeesThePanicOfAHandler(t *testing.T) {
	t.Parallel()
	logged := make(entry, 2)
	front := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, chimiddleware.WithLogEntry(r, logged))
		})
	}
	p := newPage(func(http.ResponseWriter, *http.Request) { panic(errFailed) })
	f := inOrder(t, Config{}, []wrap{front, chimiddleware.Recoverer}, nil, p)
	for range 2 {
		expect.Equal(t, "status", f.get("/").StatusCode, http.StatusInternalServerError)
		panicked, _ := (<-logged).(error)
		expect.ErrorIs(t, panicked, errFailed)
		expect.Equal(t, "its stack", strings.Contains(panicked.Error(), "order_test.go"), true)
	}
}

var errFailed = errors.New("failed")

// entry is a log of panics.
type entry chan any

func (entry) Write(int, int, http.Header, time.Duration, any) {}
func (e entry) Panic(v any, _ []byte)                         { e <- v }

// Behind the cache, the handler's Cache-Control goes out with the 504, and may say that it lasts.
func TestATimeoutMayStandOnEitherSide(t *testing.T) {
	t.Parallel()
	timeout := []wrap{chimiddleware.Timeout(time.Millisecond)}
	for name, c := range map[string]struct {
		cfg           Config
		front, behind []wrap
	}{
		"in front": {Config{}, timeout, nil},
		"behind":   {Config{StoreErrors: map[int]time.Duration{}}, nil, timeout},
	} {
		p := newPage(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			<-r.Context().Done()
		})
		f := inOrder(t, c.cfg, c.front, c.behind, p)
		for range 2 {
			a := f.get("/")
			expect.Equal(t, name, a.StatusCode, http.StatusGatewayTimeout)
			expect.Equal(t, name+": it is not stored", isHit(a), false)
			f.stored()
		}
	}
}

// StripPrefix: TestAPageBehindStripPrefixIsInvalidatedByTheURLThatClientsKnow.
func TestARewrittenPageKeepsTheURLOfTheClient(t *testing.T) {
	t.Parallel()
	rewrites := []wrap{chimiddleware.PathRewrite("/old", "/new")}
	for name, c := range map[string]struct{ front, behind []wrap }{"in front": {rewrites, nil}, "behind": {nil, rewrites}} {
		p := newPage(func(w http.ResponseWriter, r *http.Request) { says(r.URL.Path, fresh)(w, r) })
		f := inOrder(t, Config{}, c.front, c.behind, p)
		for _, path := range []string{"/old/a", "/new/a"} {
			f.warm(path)
			expect.Equal(t, name, f.get(path).body, "/new/a")
		}
		expect.Equal(t, name+": pages", p.calls.Load(), 2)
		expect.ErrorIs(t, f.invalidate("/old/a"))
		expect.Equal(t, name+": invalidated", isHit(f.get("/old/a")), false)
		expect.Equal(t, name+": another page", isHit(f.get("/new/a")), true)
	}
}

func TestAFieldByWhichRequestsAreRoutedTellsPagesApartIfItIsNamed(t *testing.T) {
	t.Parallel()
	routed := []wrap{chimiddleware.RouteHeaders().Route("X-Tenant", "a", marks("a")).Route("X-Tenant", "b", marks("b")).Handler}
	for name, c := range map[string]struct {
		front, behind []wrap
		cfg           Config
		vary          string
	}{
		"RouteHeaders in front":      {routed, nil, Config{KeyFields: []string{"X-Tenant"}}, "X-Other"},
		"RouteHeaders behind":        {nil, routed, Config{KeyFields: []string{"X-Tenant"}}, "X-Other"},
		"Vary":                       {routed, nil, Config{}, "X-Tenant"},
		"a field that front sets":    {routed, nil, Config{KeyFields: []string{"X-Mark"}}, "X-Other"},
		"a claim about what it says": {routed, nil, Config{Key: Key{Claim: func(r *http.Request) string { return r.Header.Get("X-Mark") }}}, "X-Other"},
	} {
		p := newPage(func(w http.ResponseWriter, r *http.Request) {
			says(r.Header.Get("X-Mark"), fresh, "Vary: "+c.vary)(w, r)
		})
		f := inOrder(t, c.cfg, c.front, c.behind, p)
		for _, tenant := range []string{"a", "b", "a", "b"} {
			expect.Equal(t, name, f.get("/", "X-Tenant: "+tenant).body, tenant)
			f.stored()
		}
		expect.Equal(t, name+": calls", p.calls.Load(), 2)
	}
}

// marks sets a field that the handler reads.
func marks(with string) wrap {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Mark", with)
			next.ServeHTTP(w, r)
		})
	}
}

func TestALogInFrontSeesEachRequestAndOneBehindOnlyMisses(t *testing.T) {
	t.Parallel()
	var front, behind atomic.Int64
	counts := func(n *atomic.Int64) wrap {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n.Add(1)
				next.ServeHTTP(w, r)
			})
		}
	}
	f := inOrder(t, Config{}, []wrap{counts(&front)}, []wrap{counts(&behind)}, newPage(says("page", fresh)))
	for range 3 {
		f.warm("/")
	}
	expect.Equal(t, "in front", front.Load(), 3)
	expect.Equal(t, "behind", behind.Load(), 1)
}

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/middleware"
)

// A page has names of every kind, its variants are told apart in one of several ways, and two instances serve it. Its record is stored again in one
// way or several, without what its handler has said of its names. Whatever ends one of its names, between any two requests to Redis or
// afterwards, nobody gets the old page.

// shelf has one page, of old or of new.
type shelf struct {
	*testing.T
	env      *cacheguardtest.Env
	cache    *middleware.Cache
	guard    *cacheguard.Guard // that invalidates
	handlers [2]http.Handler
	by       string
	text     atomic.Pointer[string]
	mode     atomic.Pointer[string]
	joined   atomic.Int64 // requests that wait for another's load
	left     atomic.Int64 // requests to Redis until between is called
	between  func()
}

const (
	ofVary, ofClaim, ofCookie = "Vary", "Claim", "Cookie"
	pageLasts                 = 10 * time.Second
)

// newShelf returns one with a page that is stored and known to be hit.
func newShelf(t *testing.T, by string, cfg middleware.Config) *shelf {
	t.Helper()
	s := &shelf{T: t, by: by}
	s.env = cacheguardtest.New(t, cacheguard.Config{Hooks: cacheguard.Hooks{OnJoin: func(string) { s.joined.Add(1) }}})
	s.says("old", "")
	cfg.Prefixes, cfg.KeepFor = []string{"/shop/"}, time.Hour
	switch by {
	case ofClaim:
		cfg.Key.Claim = func(r *http.Request) string { return r.Header.Get("X-A") }
	case ofCookie:
		cfg.Key.Cookies = []string{"a"}
	}
	for i := range s.handlers {
		guard := s.env.Guard
		if i > 0 {
			guard = s.another()
		}
		cache, err := middleware.New(guard, cfg)
		expect.Equal(t, "New", err, nil)
		s.handlers[i] = cache.Handler(s)
	}
	s.guard = s.another()
	var err error
	s.cache, err = middleware.New(s.guard, cfg)
	expect.Equal(t, "New", err, nil)
	_ = s.get(0, "a") + s.get(0, "a") // a tag that is new may need a second load
	s.env.Redis.AddHook(s)
	return s
}

func (s *shelf) another() *cacheguard.Guard {
	guard, err := cacheguard.New(s.env.Redis, cacheguard.Config{})
	expect.Equal(s.T, "New", err, nil)
	s.Cleanup(func() { _ = guard.Close() }) // always nil
	return guard
}

func (s *shelf) says(text, mode string) {
	s.text.Store(&text)
	s.mode.Store(&mode)
}

// ServeHTTP names the page's names only where it makes it.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, h := *s.text.Load(), w.Header()
	if r.Method == http.MethodPost {
		h.Set("Cache-Group-Invalidation", `"group"`)
		return
	}
	h.Set("Cache-Control", fmt.Sprintf("max-age=%d", pageLasts/time.Second))
	h.Set("Etag", `"`+text+`"`)
	if s.by == ofVary {
		h.Set("Vary", "X-A")
	}
	switch mode := *s.mode.Load(); {
	case mode == "fails":
		w.WriteHeader(http.StatusServiceUnavailable)
	case mode == "panics":
		panic(http.ErrAbortHandler)
	case mode == "private":
		h.Set("Cache-Control", "private")
	case r.Header.Get("If-None-Match") == h.Get("Etag"):
		w.WriteHeader(http.StatusNotModified)
	default:
		cacheguard.SetTags(r.Context(), "set")
		h.Set("Cache-Tag", "cache")
		h.Set("Surrogate-Key", "surrogate")
		h.Set("Cache-Groups", `"group"`)
		_, _ = fmt.Fprint(w, text)
	}
}

// get asks an instance for a variant of the page.
func (s *shelf) get(instance int, a string) string {
	s.Helper()
	w := s.send(instance, http.MethodGet, "/shop/1", a)
	s.env.Settle()
	return w.Body.String()
}

// begins asks an instance for the first variant, and returns when that has joined a load, or has asked Redis twice, or is done.
func (s *shelf) begins(instance int) <-chan string {
	answered, left, joined := make(chan string, 1), s.left.Load(), s.joined.Load()
	go func() { // owner: the test; ends with the response; joined by receiving
		answered <- s.send(instance, http.MethodGet, "/shop/1", "a").Body.String()
	}()
	redistest.Await(s, "it asks", func() bool {
		return len(answered) > 0 || s.joined.Load() > joined || s.left.Load() <= left-2
	})
	return answered
}

func (s *shelf) send(instance int, method, url, a string) (w *httptest.ResponseRecorder) {
	w = httptest.NewRecorder()
	r := httptest.NewRequestWithContext(s.Context(), method, url, http.NoBody)
	r.Header.Set("X-A", a)
	r.AddCookie(&http.Cookie{Name: "a", Value: a})
	defer func() { _ = recover() }() // of a handler that panics
	s.handlers[instance].ServeHTTP(w, r)
	return w
}

// again are the ways in which a page's record is stored again. The first variant is a.
var again = map[string]struct {
	way func(s *shelf)
	cfg middleware.Config
}{
	"another variant":              {way: func(s *shelf) { s.env.Advance(time.Second); s.get(0, "b") }},
	"another variant elsewhere":    {way: func(s *shelf) { s.env.Advance(time.Second); s.get(1, "b") }},
	"confirmed":                    {way: func(s *shelf) { s.grows(); s.get(0, "a") }},
	"confirmed elsewhere":          {way: func(s *shelf) { s.grows(); s.get(1, "a") }},
	"confirmed while it is served": {func(s *shelf) { s.grows(); s.get(0, "a") }, middleware.Config{StaleWhile: time.Hour}},
	"stands in for a failure":      {way: func(s *shelf) { s.grows(); s.turns("fails"); s.get(0, "a") }},
	"stands in for a panic":        {way: func(s *shelf) { s.grows(); s.turns("panics"); s.get(0, "a") }},
	"left by what is private":      {func(s *shelf) { s.grows(); s.turns("private"); s.get(0, "a") }, middleware.Config{StaleWhile: time.Hour}},
	"softly invalidated": {func(s *shelf) {
		s.turns("fails")
		r := httptest.NewRequestWithContext(s.Context(), http.MethodGet, "/shop/1", http.NoBody)
		expect.ErrorIs(s.T, s.cache.Invalidate(middleware.Soft(s.Context()), r))
		s.env.Settle()
	}, middleware.Config{StaleWhile: time.Hour}},
}

func (s *shelf) grows() { s.env.Advance(pageLasts + time.Second) }

func (s *shelf) turns(mode string) { s.says(*s.text.Load(), mode) }

// endings end one of the page's names.
var endings = map[string]func(s *shelf) error{
	"InvalidateTags":       func(s *shelf) error { return s.guard.InvalidateTags(s.Context(), "set") },
	"InvalidateAll":        func(s *shelf) error { return s.guard.InvalidateAll(s.Context()) },
	"a tag of Cache-Tag":   func(s *shelf) error { return s.cache.InvalidateTags(s.Context(), "cache") },
	"one of Surrogate-Key": func(s *shelf) error { return s.cache.InvalidateTags(s.Context(), "surrogate") },
	"InvalidatePrefix":     func(s *shelf) error { return s.cache.InvalidatePrefix(s.Context(), "/shop/") },
	"a group": func(s *shelf) error {
		w := s.send(1, http.MethodPost, "/other", "")
		if w.Code != http.StatusOK || strings.Contains(w.Header().Get("Cache-Status"), "not-invalidated") {
			return fmt.Errorf("%d %v", w.Code, w.Header())
		}
		return nil
	},
	"Intend and Done": func(s *shelf) error {
		in, err := s.guard.Intend(s.Context(), cacheguard.Changes{Tags: []string{"set"}})
		if err != nil {
			return err
		}
		return in.Done(s.Context())
	},
	"Update and Also": func(s *shelf) error {
		return s.guard.Update(s.Context(), "other", func(ctx context.Context) error {
			return cacheguard.Also(ctx, cacheguard.Changes{Tags: []string{"set"}})
		})
	},
	"PURGE": func(s *shelf) error {
		r, w := httptest.NewRequestWithContext(s.Context(), "PURGE", "/", http.NoBody), httptest.NewRecorder()
		r.Header.Set("Cache-Tag", "cache")
		s.cache.PurgeHandler(func(*http.Request) bool { return true }).ServeHTTP(w, r)
		if w.Code != http.StatusNoContent {
			return errors.New(w.Result().Status)
		}
		return nil
	},
}

// ends changes the page, and ends a name of it.
func (s *shelf) ends(name string) {
	text := "new"
	s.text.Store(&text)
	expect.ErrorIs(s.T, endings[name](s))
}

// isGone checks that nobody gets the old page.
func (s *shelf) isGone(what string) {
	s.Helper()
	for range 2 {
		for instance := range s.handlers {
			for _, a := range []string{"a", "b", "c"} {
				if s.get(instance, a) == "old" {
					s.Errorf("%s: variant %s on instance %d is the old one", what, a, instance)
				}
			}
		}
	}
}

// The requests of all Guards to Redis are counted, so that a name can end before any of them.
func (s *shelf) before() {
	if s.left.Add(-1) == 0 {
		s.between()
	}
}

func (s *shelf) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *shelf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { s.before(); return next(ctx, cmd) }
}

func (s *shelf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { s.before(); return next(ctx, cmds) }
}

func TestWhatIsStoredAgainKeepsItsNames(t *testing.T) {
	t.Parallel()
	for way, c := range again {
		for ending := range endings {
			for _, by := range []string{ofVary, ofClaim, ofCookie} {
				t.Run(way+", "+ending+", "+by, func(t *testing.T) {
					t.Parallel()
					s := newShelf(t, by, c.cfg)
					c.way(s)
					expect.Equal(t, "before", s.get(0, "a"), "old")
					s.ends(ending)
					s.isGone("afterwards")
				})
			}
		}
	}
}

// mostRequests is more than a way makes.
const mostRequests = 40

// A name ends between two requests to Redis of what stores the record again.
func TestWhatIsStoredAgainIsNoYoungerThanItsNames(t *testing.T) {
	t.Parallel()
	for way, c := range again {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			names := make([]string, 0, len(endings))
			for name := range endings {
				names = append(names, name)
			}
			slices.Sort(names)
			for at, more := int64(1), true; more && at <= mostRequests; at++ {
				for range expect.Samples(2, 20) {
					seed := rand.Uint64()
					draw := rand.New(rand.NewPCG(seed, 0))
					ending, by := names[draw.IntN(len(names))], []string{ofVary, ofClaim, ofCookie}[draw.IntN(3)]
					t.Run(fmt.Sprintf("%s before request %d, %s", ending, at, by), func(t *testing.T) {
						s := newShelf(t, by, c.cfg)
						ended, who := make(chan struct{}), draw.IntN(len(s.handlers))
						var late <-chan string
						s.between = func() {
							defer close(ended)
							s.ends(ending)
							late = s.begins(who)
						}
						s.left.Store(at)
						c.way(s)
						if more = s.left.Swap(0) <= 0; more {
							<-ended // it may have been before a request in the background
							if <-late == "old" {
								t.Error("who came after that got the old page")
							}
							s.isGone("afterwards")
						}
					})
				}
			}
		})
	}
}

package middleware_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
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
	s.env = cacheguardtest.New(t, cacheguard.Config{Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventJoin, func(context.Context, cacheguard.Event) { s.joined.Add(1) })}})
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

func (s *shelf) grows() { s.env.Advance(pageLasts + time.Second) }

func (s *shelf) turns(mode string) { s.says(*s.text.Load(), mode) }

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

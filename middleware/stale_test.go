package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware"
)

// versions is a page whose handler says how often it was called, or fails.
type versions struct {
	*testing.T
	env     *cacheguardtest.Env
	cache   *middleware.Cache
	handler http.Handler
	calls   atomic.Int64
	loads   atomic.Int64 // of records, too
	control atomic.Value // Cache-Control
	fails   atomic.Bool
}

func newVersions(t *testing.T, cfg middleware.Config, control string) *versions {
	t.Helper()
	v := &versions{T: t}
	v.env = cacheguardtest.New(t, cacheguard.Config{Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventLoad, func(context.Context, cacheguard.Event) { v.loads.Add(1) })}})
	v.control.Store(control)
	cache, err := middleware.New(v.env.Guard, cfg)
	if err != nil {
		t.Fatal(err)
	}
	v.cache = cache
	v.handler = cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := v.calls.Add(1)
		w.Header().Set("Cache-Control", v.control.Load().(string))
		w.Header().Set("Vary", "X-A")
		w.Header().Set("Cache-Tag", "all")
		if v.fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = fmt.Fprint(w, n)
	}))
	return v
}

func (v *versions) want(what, a, body string) {
	v.Helper()
	r, w := httptest.NewRequestWithContext(v.Context(), http.MethodGet, "/", http.NoBody), httptest.NewRecorder()
	r.Header.Set("X-A", a)
	v.handler.ServeHTTP(w, r)
	v.env.Settle()
	expect.Equal(v, what, w.Body.String(), body)
}

func TestStaleWhileServesAPageWhileOneRebuildsIt(t *testing.T) {
	t.Parallel()
	for control, stands := range map[string]bool{
		"max-age=60":                           true,
		"max-age=60, stale-while-revalidate=1": false,
		"max-age=60, must-revalidate":          false,
		"s-maxage=60":                          false,
		"max-age=0":                            false,
	} {
		v := newVersions(t, middleware.Config{StaleWhile: time.Hour, StaleIfError: -1, KeepFor: -1}, control)
		v.want(control+": made", "", "1")
		v.env.Advance(90 * time.Second)
		first, second := "2", "2"
		if stands {
			first = "1"
		}
		if control == "max-age=0" {
			second = "3"
		}
		v.want(control+": stale", "", first)
		v.want(control+": rebuilt", "", second)
	}
	v := newVersions(t, middleware.Config{StaleWhile: time.Hour, StaleIfError: -1, KeepFor: -1}, "max-age=60")
	v.want("made", "", "1")
	v.env.Advance(2 * time.Hour)
	v.want("too old", "", "2")
}

func TestASoftInvalidationLetsThePageStandIn(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(v *versions) error{
		"Invalidate": func(v *versions) error {
			return v.cache.Invalidate(middleware.Soft(v.Context()), httptest.NewRequestWithContext(v.Context(), http.MethodGet, "/", http.NoBody))
		},
		"PURGE": func(v *versions) error {
			r, w := httptest.NewRequestWithContext(v.Context(), "PURGE", "/", http.NoBody), httptest.NewRecorder()
			r.Header.Set("Soft", "1")
			v.cache.PurgeHandler(func(*http.Request) bool { return true }).ServeHTTP(w, r)
			expect.Equal(v, "status", w.Code, http.StatusNoContent)
			return nil
		},
	} {
		v := newVersions(t, middleware.Config{StaleWhile: time.Minute, StaleIfError: -1, KeepFor: -1}, "max-age=3600")
		v.want(name+": made", "a", "1")
		v.want(name+": a variant", "b", "2")
		expect.ErrorIs(t, invalidate(v))
		v.want(name+": it stands in", "a", "1")
		v.want(name+": rebuilt", "a", "3")
		v.want(name+": the variant stands in", "b", "2")
		v.want(name+": and is rebuilt", "b", "4")
		v.fails.Store(true)
		expect.ErrorIs(t, invalidate(v))
		for range 3 {
			v.want(name+": for a handler that fails", "a", "3")
			v.want(name+": for a handler that fails, the variant", "b", "4")
		}
		v.env.Advance(2 * time.Minute)
		v.fails.Store(false)
		calls := v.calls.Load()
		v.want(name+": never longer than StaleWhile", "a", fmt.Sprint(calls+1))
		v.want(name+": the variant neither", "b", fmt.Sprint(calls+2))
	}
}

func TestASoftInvalidationIsAnOrdinaryOneWhereNothingMayBeStale(t *testing.T) {
	t.Parallel()
	for control, cfg := range map[string]middleware.Config{
		"max-age=60, must-revalidate": {StaleWhile: time.Hour}, "max-age=60": {},
	} {
		v := newVersions(t, cfg, control)
		v.want(control+": made", "", "1")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		loads := v.loads.Load()
		expect.ErrorIs(t, v.cache.Invalidate(middleware.Soft(context.Background()), r))
		expect.Equal(t, control+": what is stored again", v.loads.Load()-loads, 0)
		v.want(control+": gone", "", "2")
	}
}

// What cannot be done softly is refused, and not done in another way.
func TestASoftInvalidationOfTagsOrPrefixesIsRefused(t *testing.T) {
	t.Parallel()
	purge := func(v *versions, ctx context.Context, fields ...string) error {
		r, w := httptest.NewRequestWithContext(ctx, "PURGE", "/", http.NoBody), httptest.NewRecorder()
		for _, field := range fields {
			r.Header.Set(field, "all")
		}
		v.cache.PurgeHandler(func(*http.Request) bool { return true }).ServeHTTP(w, r)
		if w.Code != http.StatusNoContent {
			return fmt.Errorf("status %d", w.Code)
		}
		return nil
	}
	for name, invalidate := range map[string]func(v *versions) error{
		"tags":               func(v *versions) error { return v.cache.InvalidateTags(middleware.Soft(v.Context()), "all") },
		"a prefix":           func(v *versions) error { return v.cache.InvalidatePrefix(middleware.Soft(v.Context()), "/") },
		"PURGE of tags":      func(v *versions) error { return purge(v, v.Context(), "Cache-Tag", "Soft") },
		"PURGE of keys":      func(v *versions) error { return purge(v, v.Context(), "Surrogate-Key", "Soft") },
		"PURGE in a context": func(v *versions) error { return purge(v, middleware.Soft(v.Context()), "Cache-Tag") },
	} {
		v := newVersions(t, middleware.Config{StaleWhile: time.Hour, Prefixes: []string{"/"}}, "max-age=60")
		v.want(name+": made", "", "1")
		expect.Equal(t, name+": an error", invalidate(v) != nil, true)
		v.want(name+": and nothing else", "", "1")
	}
}

func TestOverrideCorrectsWhatIsSaidBeforeItIsJudged(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	env := cacheguardtest.New(t, cacheguard.Config{})
	cache, err := middleware.New(env.Guard, middleware.Config{
		Override: func(r *http.Request, h http.Header) {
			if r.URL.Path == "/public" {
				h.Del("Vary")
				h.Set("Cache-Control", "max-age=60")
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	handler := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Vary", "Cookie")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = fmt.Fprint(w, "page")
	}))
	get := func(path, cookie string) http.Header {
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody), httptest.NewRecorder()
		r.Header.Set("Cookie", cookie)
		handler.ServeHTTP(w, r)
		env.Settle()
		return w.Header()
	}
	for i, cookie := range []string{"a=1", "a=2", "a=3"} {
		h := get("/public", cookie)
		expect.Equal(t, fmt.Sprint(i, ": what the client gets"), h.Get("Cache-Control")+h.Get("Vary"), "max-age=60")
	}
	expect.Equal(t, "calls", calls.Load(), 1)
	get("/other", "a=1")
	expect.Equal(t, "another route", get("/other", "a=1").Get("Vary"), "Cookie")
	expect.Equal(t, "calls", calls.Load(), 3)
}

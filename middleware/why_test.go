package middleware

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/middleware/internal/rules"
)

func TestCacheStatusSaysWhyAPageWasNotStored(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{MaxBody: 10}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("lifetime") {
			w.Header().Set("Cache-Control", "max-age=60")
		}
		switch r.URL.Path {
		case "/private":
			w.Header().Set("Cache-Control", "private, max-age=60")
		case "/set-cookie":
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		case "/too-large":
			_, _ = w.Write([]byte(strings.Repeat("x", 20)))
		case "/declared":
			w.Header().Set("Content-Length", "20")
			_, _ = w.Write([]byte(strings.Repeat("x", 20)))
		case "/flush":
			http.NewResponseController(w).Flush() //nolint:errcheck // the client sees it
		case "/stale":
			w.Header().Set("Cache-Control", "max-age=0")
		}
		_, _ = w.Write([]byte("page"))
	}))
	for path, why := range map[string]string{
		"/private": "private", "/set-cookie?lifetime": "set-cookie", "/too-large?lifetime": "too-large",
		"/declared?lifetime": "too-large", "/flush": "no-lifetime", "/stale": "stale", "/nothing": "no-lifetime",
	} {
		for i, kind := range []string{"the client that caused it", "a request that passes through", "another instance"} {
			got := f.do(i/2, http.MethodGet, path)
			if s := got.cacheStatus(); !strings.HasPrefix(s, "cacheguard; fwd=uri-miss") || !strings.HasSuffix(s, "; detail="+why) {
				t.Errorf("%s, %s: %q", path, kind, s)
			}
		}
	}
	if s := f.get("/fine?lifetime").cacheStatus(); !strings.HasSuffix(s, "; stored") {
		t.Errorf("stored: %q", s)
	}
}

func TestCacheStatusSaysThatAPageWasIncomplete(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("page"))
	}))
	resp, err := f.client.Get(f.urls[0])
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // it is short
	if s := resp.Header.Get("Cache-Status"); s != "cacheguard; fwd=uri-miss; fwd-status=200; detail=incomplete" {
		t.Errorf("%q", s)
	}
}

func TestCacheStatusSaysThatAPageWasFlushed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{DefaultTTL: time.Minute}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("first"))
		_ = http.NewResponseController(w).Flush() // the client sees it
	}))
	for range 2 {
		if s := f.get("/").cacheStatus(); !strings.HasSuffix(s, "; detail=flush") {
			t.Errorf("%q", s)
		}
	}
}

func TestCacheStatusSaysThatAPageHasTooManyTags(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{DefaultTTL: time.Minute}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range rules.MaxTags + 1 {
			w.Header().Add("Cache-Tag", strconv.Itoa(i))
		}
	}))
	for range 2 {
		if s := f.get("/").cacheStatus(); !strings.HasSuffix(s, "; detail=tags") {
			t.Errorf("%q", s)
		}
	}
}

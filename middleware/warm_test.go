package middleware

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestALoadGoesOnAfterItsClientsHaveLeftIfItIsToBeFinished(t *testing.T) {
	t.Parallel()
	for _, finish := range []bool{true, false} {
		t.Run(fmt.Sprint(finish), func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			p := newPage(nil)
			p.hold = make(chan struct{})
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p.begun <- struct{}{}
				select {
				case <-p.hold:
					says("page", fresh)(w, r)
				case <-r.Context().Done():
				}
				ended <- r.Context().Err()
			})
			f := newFleet(t, 1, Config{FinishLoads: finish}, handler)
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() { // owner: the test; stop: leave; joined by receiving
				defer close(gone)
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, f.urls[0]+"/", nil)
				r.Host = host
				if left, err := f.client.Do(r); err == nil {
					_ = left.Body.Close() // of a response that nobody wanted
					t.Error("the client did not leave")
				}
			}()
			<-p.begun
			leave()
			<-gone
			if !finish {
				expect.Equal(t, "it was ended", <-ended, context.Canceled)
				return
			}
			redistest.Await(t, "the server knows that the client has left", func() bool { return f.waiting(0) == 0 })
			close(p.hold)
			expect.Equal(t, "it ended by itself", <-ended, nil)
			f.stored()
			expect.Equal(t, "a hit", strings.HasPrefix(f.get("/").cacheStatus(), "cacheguard; hit"), true)
		})
	}
}

// waiting is how many calls wait for loads of instance i.
func (f *fleet) waiting(i int) int { return f.guards[i].Stats().Waiting }

func TestALoadForNobodyIsEndedWhenItsResponseCannotBeStored(t *testing.T) {
	t.Parallel()
	ended, release := make(chan error, 1), make(chan struct{})
	begun := make(chan struct{}, 1)
	f := newFleet(t, 1, Config{FinishLoads: true}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-release
		w.Header().Set("Cache-Control", "private")
		w.WriteHeader(http.StatusOK)
		<-r.Context().Done()
		ended <- r.Context().Err()
	}))
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { // owner: the test; stop: leave; joined by receiving
		defer close(gone)
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, f.urls[0]+"/", nil)
		if left, err := f.client.Do(r); err == nil {
			_ = left.Body.Close() // nobody reads it
		}
	}()
	<-begun
	leave()
	<-gone
	close(release)
	expect.Equal(t, "its context", <-ended, context.Canceled)
}

func TestWarmMakesPagesAsClientsAskForThem(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/private":
			says("mine", "Cache-Control: private")(w, r)
		case "/panics":
			panic("no")
		default:
			says(r.URL.RequestURI()+r.Header.Get("Accept-Encoding"), fresh, "Vary: Accept-Encoding")(w, r)
		}
	})
	f := newFleet(t, 1, Config{Limits: Limits{Admit: time.Hour}}, p)
	header := http.Header{"Accept-Encoding": {"gzip"}, "X-Forwarded-Proto": {"https"}}
	urls := []string{"https://" + host + "/a", "http://" + host + "/b?c=d#top", "https://" + host + "/private", "https://" + host + "/panics", "/nowhere", ":"}
	stored, err := f.caches[0].Warm(t.Context(), p, slices.Values(urls), header)
	expect.Equal(t, "stored", stored, 2)
	for _, named := range []string{"/private", "passed", "/panics", "/nowhere", "\":\""} {
		expect.Equal(t, named, strings.Contains(fmt.Sprint(err), named), true)
	}
	f.stored()
	calls := p.calls.Load()
	expect.Equal(t, "a", f.get("/a", "Accept-Encoding: gzip", "X-Forwarded-Proto: https").body, "/agzip")
	expect.Equal(t, "b", f.get("/b?c=d", "Accept-Encoding: gzip", "X-Forwarded-Proto: https").body, "/b?c=dgzip")
	stored, err = f.caches[0].Warm(t.Context(), p, slices.Values(urls[:2]), header)
	expect.Equal(t, "again", fmt.Sprint(stored, err), "2 <nil>")
	expect.Equal(t, "calls", p.calls.Load(), calls)
	expect.Equal(t, "counted as no requests", f.count(Loaded), 0)
}

// With chi's Use, nobody has the handler behind the cache alone.
func TestTheWholeServiceCanBeWarmed(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", "Cache-Control: max-age=60, stale-while-revalidate=600", "Age: 70"))
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	r := chi.NewRouter()
	r.Use(chimiddleware.RequestID, f.caches[0].Handler)
	r.Get("/{id}", p.ServeHTTP)
	f.front(r)
	urls := slices.Values([]string{"http://" + host + "/1"})
	warm := func(what string, calls int64) {
		t.Helper()
		stored, err := f.caches[0].Warm(t.Context(), r, urls, nil)
		expect.Equal(t, what, fmt.Sprint(stored, err), "1 <nil>")
		redistest.Await(t, what+": it is made", func() bool { return p.calls.Load() >= calls }) // what is stale, in the background
		f.stored()
		expect.Equal(t, what+": calls", p.calls.Load(), calls)
	}
	warm("missing", 1)
	p.serve = says("new", fresh)
	warm("stale", 2)
	a := f.get("/1")
	expect.Equal(t, "the page", a.body, "new")
	expect.Equal(t, "one cache", strings.Contains(a.cacheStatus(), ","), false)
	redistest.Await(t, "it is counted", func() bool { return f.count(Hit) == 1 })
	expect.Equal(t, "requests of Warm that were counted", f.count(Passed), 0)
}

// The Guard's MaxLoads holds for what is warmed, also where it does not for clients.
func TestWarmCountsTowardsMaxLoads(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		says("page", fresh)(w, r)
	})
	f := newFleetOn(t, shared, 1, Config{}, cacheguard.Config{MaxLoads: 1}, p)
	urls := make([]string, 50)
	for i := range urls {
		urls[i] = fmt.Sprint("http://", host, "/", i)
	}
	stored, err := f.caches[0].Warm(t.Context(), p, slices.Values(urls), nil)
	expect.Equal(t, "stored", fmt.Sprint(stored, err), "50 <nil>")
	expect.Equal(t, "at once", most.Load(), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stored, err = f.caches[0].Warm(ctx, p, slices.Values(urls), nil)
	expect.Equal(t, "cancelled", fmt.Sprint(stored, err), "0 context canceled")
}

func TestASitemapListsURLs(t *testing.T) {
	t.Parallel()
	urls, err := Sitemap(strings.NewReader(`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <url><loc> https://shop.example/?a=1&amp;b=2 </loc><lastmod>2026-01-01</lastmod></url>
  <url><loc>https://shop.example/b</loc></url>
</urlset>`))
	expect.Equal(t, "URLs", fmt.Sprint(urls, err), "[https://shop.example/?a=1&b=2 https://shop.example/b] <nil>")
	for name, text := range map[string]string{
		"an index": `<sitemapindex><sitemap><loc>x</loc></sitemap></sitemapindex>`, "no XML": "https://shop.example/", "cut off": "<urlset><url>",
	} {
		if _, err := Sitemap(strings.NewReader(text)); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

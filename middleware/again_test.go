package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware"
)

// A page has names of every kind, its variants are told apart in one of several ways, and two instances serve it. Its record is stored again in one
// way or another, without what its handler has said of its names. Whatever ends one of its names, between any two requests to Redis or
// afterwards, nobody gets the old page.

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

// One of two pairs of a way and an ending meets with one kind of variants, or all with all where THOROUGH is set.
func TestWhatIsStoredAgainKeepsItsNames(t *testing.T) {
	t.Parallel()
	kinds, first := []string{ofVary, ofClaim, ofCookie}, rand.IntN(3)
	for i, way := range slices.Sorted(maps.Keys(again)) {
		for j, ending := range slices.Sorted(maps.Keys(endings)) {
			if !expect.Drawn(2) {
				continue
			}
			for k := range expect.Samples(1, len(kinds)) {
				by := kinds[(first+i+j+k)%len(kinds)]
				t.Run(way+", "+ending+", "+by, func(t *testing.T) {
					t.Parallel()
					s := newShelf(t, by, again[way].cfg)
					again[way].way(s)
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
			names := slices.Sorted(maps.Keys(endings))
			for at, more := int64(1), true; more && at <= mostRequests; at += int64(1 + rand.IntN(expect.Samples(3, 1))) {
				for range expect.Samples(1, 8) {
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

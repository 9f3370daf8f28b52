package middleware

import (
	"iter"
	"net/http"
	"slices"

	"github.com/cacheguard/go/internal/testing/expect"
)

// invalidations are the ways to invalidate the page /a/1, which has the tag t1, from the last instance of a fleet.
var invalidations = map[string]func(f *fleet, last int) error{
	"by request": func(f *fleet, _ int) error { return f.invalidate("/a/1") },
	"by tag":     func(f *fleet, last int) error { return f.caches[last].InvalidateTags(f.t.Context(), "t1") },
	"by prefix":  func(f *fleet, last int) error { return f.caches[last].InvalidatePrefix(f.t.Context(), "/a/") },
	"by POST": func(f *fleet, last int) error {
		_, err := f.try(last, http.MethodPost, "/a/1")
		return err
	},
}

// ways are some of the invalidations, or all. Each fails the test when it returns an error.
func ways(names ...string) iter.Seq2[string, func(*fleet)] {
	return func(yield func(string, func(*fleet)) bool) {
		for name, invalidate := range invalidations {
			if len(names) > 0 && !slices.Contains(names, name) {
				continue
			}
			if !yield(name, func(f *fleet) {
				f.t.Helper()
				expect.Equal(f.t, "error of the invalidation", invalidate(f, len(f.caches)-1), nil)
			}) {
				return
			}
		}
	}
}

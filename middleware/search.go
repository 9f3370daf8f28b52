package middleware

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/cacheguard/go/middleware/internal/canonical"
)

// A response with No-Vary-Search may answer requests for other queries of its path. So the pages of such a path are variants of one page,
// selected by what counts of their queries, and an invalidation of one of them needs to know nothing of the field. The cache learns of it from
// the first response of a path that an instance makes, which it does not store. Under its URL, a mark leads other instances to the page.

// otherSearch is why a response is not stored: it was asked for as one of a path whose queries differ in another way than it says.
const otherSearch = "search"

// searches remembers what the responses of paths said last, in a bounded memory.
type searches struct {
	any        atomic.Bool
	mu         sync.Mutex
	young, old map[string]*canonical.Search
}

// maxSearches is how many paths are remembered, in each of two generations.
const maxSearches = 1 << 12

func (s *searches) of(path string) *canonical.Search {
	s.mu.Lock()
	defer s.mu.Unlock()
	if said, found := s.young[path]; found {
		return said
	}
	return s.old[path]
}

// learn notes what a response of the path said; nil: nothing.
func (s *searches) learn(path string, said *canonical.Search) {
	if path == "" || said == nil && !s.any.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if said == nil {
		delete(s.young, path)
		delete(s.old, path)
		return
	}
	if s.young == nil || len(s.young) >= maxSearches {
		s.young, s.old = make(map[string]*canonical.Search), s.young
	}
	s.young[path] = said
	s.any.Store(true)
}

// searchPath makes the request ask for one of the pages of its path, if their queries differ in ways that do not matter.
func (x *exchange) searchPath() {
	if x.cache.search.any.Load() {
		x.searchBy(x.cache.search.of(canonical.Path(x.location)))
	}
}

func (x *exchange) searchBy(said *canonical.Search) {
	if said == nil || x.search != nil {
		return
	}
	x.cache.search.learn(canonical.Path(x.location), said)
	key, location, selects := x.cache.names.Searched(x.r, said)
	x.search, x.key, x.location, x.unnamed = said, key, location, append(x.unnamed, selects)
}

// searched is what counts of the request's query.
func (x *exchange) searched() string { return x.unnamed[len(x.unnamed)-1].Value }

// learnSearch notes what a response that may be stored says, and reports whether it can be stored where it was looked for.
func (b *build) learnSearch(h http.Header) bool {
	x, said := b.lookup.x, canonical.SearchOf(h)
	key, location := x.cache.names.Page(x.r)
	path := canonical.Path(location)
	x.cache.search.learn(path, said)
	if x.search == nil {
		b.moved = said != nil && path != ""
		return !b.moved
	}
	if !x.search.Same(said) {
		_ = x.cache.guard.Invalidate(b.asked.Context(), key) // a mark there would go on saying it; the Guard retries
		return false
	}
	return true
}

package middleware

import (
	"context"
	"net/http"

	"github.com/cacheguard/go/middleware/internal/canonical"
)

// A response with No-Vary-Search may answer requests for other queries of its path. So the pages of such a path are variants of one page,
// selected by what counts of their queries, and an invalidation of one of them needs to know nothing of the field. The cache learns of it from
// the first response of a path that an instance makes, which it does not store. Under its URL, a mark leads other instances to the page.

// otherSearch is why a response is not stored: it was asked for as one of a path whose queries differ in another way than it says.
const otherSearch = "search"

// searchBy makes the request ask for one of the pages of its path, if their queries differ in ways that do not matter.
func (x *request) searchBy(said *canonical.Search) {
	if said == nil || x.search != nil {
		return
	}
	x.cache.search.Learn(x.location, said)
	key, location, selects := x.cache.names.Searched(x.r, said)
	x.search, x.key, x.location, x.unnamed = said, key, location, append(x.unnamed, selects)
}

// searched is what counts of the request's query.
func (x *request) searched() string { return x.unnamed[len(x.unnamed)-1].Value }

// learnSearch notes what a response that may be stored says, and reports whether it can be stored where it was looked for, or is to be
// looked for by that.
func (x *request) learnSearch(ctx context.Context, h http.Header) (fits, moved bool) {
	said := canonical.SearchOf(h)
	key, location := x.cache.names.Page(x.r)
	known := x.cache.search.Learn(location, said)
	if x.search == nil {
		return !known, known
	}
	if !x.search.Same(said) {
		_ = x.cache.guard.Invalidate(ctx, key) // a mark there would go on saying it; the Guard retries
		return false, false
	}
	return true, false
}

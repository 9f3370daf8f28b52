package middleware

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// request is a canonical request for a page, and what was set in front of it. It does not change once a lookup has begun, so a load that
// outlives its client may read it.
type request struct {
	cache     *Cache
	r         *http.Request
	next      http.Handler
	warming   bool              // for Cache.Warm, not for a client
	want      rules.Directives  // of the request
	key       string            // of the page
	location  string            // of the page
	unnamed   []record.Pair     // what selects a variant although no Vary names it
	front     http.Header       // what was set in front: each client has its own
	varies    []string          // the fields that a Vary in it names
	forbidden bool              // it says that the response is for this client alone, unless the handler says otherwise
	search    *canonical.Search // the rule that found the page; nil: its whole query
}

// selects reports whether the request may have what a record says. What was set in front counts as if the handler had set it for this request.
func (x *request) selects(rec *record.Record) bool {
	return x.cache.names.Selects(rec, x.r, x.unnamed, x.varies) &&
		!(x.forbidden && rec.IsResponse() && x.cache.rules.Forbids(writer.Final(x.front, rec, rec.HTTPHeader())))
}

// now returns the time by which pages age.
func (x *request) now() time.Time { return x.cache.clock.Now() }

// assess assesses a response to the request.
func (x *request) assess(status int, h http.Header, sent, received time.Time) rules.Assessment {
	return x.cache.rules.Assess(x.r, rules.Reply{Status: status, Header: h, Front: x.front, Sent: sent, Received: received})
}

// mayStandIn reports whether the request may have a stale record because the handler failed.
func (x *request) mayStandIn(rec *record.Record, now time.Time) bool {
	return rec != nil && rec.MayStandIn(x.want.StaleIfError.Duration, now)
}

// left is how long a record is still kept.
func (x *request) left(rec *record.Record) time.Duration {
	now := x.now()
	age := now.Sub(rec.Received)
	left := max(rec.Variants, 2*rec.Until) - age
	if rec.IsResponse() {
		left = max(left, x.cache.rules.Remaining(rec, now))
	}
	return left
}

// A response with No-Vary-Search may answer requests for other queries of its path. So the pages of such a path are variants of one page,
// selected by what counts of their queries, and an invalidation of one of them needs to know nothing of the field. The cache learns of it from
// the first response of a path that an instance makes, which it does not store. Under its URL, a mark leads other instances to the page.

// searchBy makes the request ask for one of the pages of its path, if their queries differ in ways that do not matter.
func (x *request) searchBy(said *canonical.Search) {
	if said == nil || x.search != nil {
		return
	}
	x.cache.search.Learn(x.location, said)
	key, location, selects := x.cache.names.Searched(x.r, said)
	x.search, x.key, x.location, x.unnamed = said, key, location, append(canonical.WithoutQuery(x.unnamed), selects)
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

// otherSearch is why a response is not stored: it was asked for as one of a path whose queries differ in another way than it says.
const otherSearch = "search"

// routedForHead reports whether a router in front has already chosen the handler by the method HEAD.
func routedForHead(r *http.Request) bool {
	if r.Method != http.MethodHead {
		return false
	}
	if c := chi.RouteContext(r.Context()); c != nil && c.RouteMethod == http.MethodHead {
		return true
	}
	return strings.HasPrefix(r.Pattern, http.MethodHead+" ")
}

// hostReadInFront is the host as it was sent, if a router in front may have chosen the handler by it.
func hostReadInFront(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); r.Pattern != "" || c != nil && len(c.RoutePatterns) > 0 {
		return r.Host
	}
	return ""
}

// route is the pattern of the route that answered, if the router is one that says so.
func route(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil {
		return c.RoutePattern()
	}
	return r.Pattern
}

// foreseen is route for a request that the handler has not answered, or not itself: it shared a load that failed.
func foreseen(r *http.Request, next http.Handler) string {
	if mux, is := next.(*http.ServeMux); is && chi.RouteContext(r.Context()) == nil {
		_, pattern := mux.Handler(r)
		return pattern
	}
	if c := chi.RouteContext(r.Context()); c != nil && c.Routes != nil {
		asked := chi.NewRouteContext()
		if c.Routes.Find(asked, http.MethodGet, cmp.Or(r.URL.RawPath, r.URL.Path)) != "" {
			return asked.RoutePattern()
		}
	}
	return route(r)
}

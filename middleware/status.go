package middleware

import (
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// Result says how a request was answered.
type Result string

// The results. Where they mean the same, they have the words of cacheguard.Outcome.
const (
	Hit      Result = "hit"      // from the cache, fresh
	Stale    Result = "stale"    // from the cache, stale: it is being refreshed in the background, or cannot be at the moment
	Loaded   Result = "loaded"   // by the handler, or from the cache after the handler confirmed it
	Shared   Result = "shared"   // with the handler's response to another request, here or on another instance
	Bypassed Result = "bypassed" // by the handler, because Redis is unavailable; shared by requests to this instance
	Passed   Result = "passed"   // by the handler, for this request alone: no cache may answer it, or store the response
	Refused  Result = "refused"  // by the handler, for this request alone, because Config.Limits forbid to store the response
	Failed   Result = "failed"   // not at all, or with an error of the cache itself
)

// Response describes how a request was answered, for Config.OnResponse.
type Response struct {
	Result Result
	Status int           // 0: none was sent
	Route  string        // pattern of the route that made the response, if the router is chi or http.ServeMux
	Took   time.Duration // until the response was sent, or the client left

	// NotInvalidated is why other instances may go on serving what the request has changed: the invalidation could not be sent. The Guard
	// sends it again.
	NotInvalidated error
}

// report counts the request and calls Config.OnResponse, also when the handler panics.
func (x *exchange) report() {
	x.res.Took = time.Since(x.began)
	if x.res.Result == "" {
		x.res.Result = Failed
	}
	x.cache.count(x.res.Result)
	if x.cache.cfg.OnResponse != nil {
		x.cache.cfg.OnResponse(x.r, x.res)
	}
}

// setStatus adds this cache's member to Cache-Status, for a response of the handler's.
func (x *exchange) setStatus(f cachestatus.Forward) { x.addStatus(x.cache.cfg.Name + f.String()) }

// addStatus adds a member to Cache-Status (RFC 9211), after those of caches behind this one, to a header that is otherwise complete. Then it
// removes what clients are not to see.
func (x *exchange) addStatus(member string) {
	h := x.w.Header()
	defer writer.Hide(h, x.cache.hidden)
	if x.cache.cfg.KeyInStatus {
		member += cachestatus.Key(x.location)
	}
	if before := h["Cache-Status"]; len(before) > 0 {
		member = strings.Join(before, ", ") + ", " + member
	}
	h["Cache-Status"] = x.line(statusLine, member)
}

// describe is the member of Cache-Status for a stored response.
func (x *exchange) describe(l *lookup, got found, now time.Time) string {
	left := got.rec.Fresh(now)
	f := cachestatus.Forward{Why: l.why, TTL: left, HasTTL: true}
	switch own := got.own; {
	case own != nil:
		f.Status, f.Stored, f.Detail, f.HasTTL = own.w.Status, own.stored.Load(), own.refused, own.refused == ""
		if got.result() == Bypassed {
			f.Stored, f.Detail = false, "redis"
		}
	case got.result() == Shared || got.result() == Loaded:
		f.Collapsed = true
	case got.result() == Bypassed:
		f.Collapsed, f.Detail = true, "redis"
	default:
		return x.cache.hits.Of(left)
	}
	return x.cache.cfg.Name + f.String()
}

package middleware

import (
	"net/http"
	"time"

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

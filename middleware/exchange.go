package middleware

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// exchange is one request and its response.
type exchange struct {
	// These do not change once a lookup has begun, so a load that outlives the request may read them.
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

	// These belong to the request's goroutine.
	w       http.ResponseWriter
	began   time.Time // if the request is reported
	res     Response
	checked *lookup // found a mark whose time is up: see mark.go
	reload  *reload // the handler does not have the slices that were found: see large.go

	first lookup           // most requests need no other
	lines [ownLines]string // the values of the fields that the exchange itself sets: see line
}

// serve decides whether the cache has anything to do with the request.
func (x *exchange) serve() {
	if !x.cache.cfg.IgnoreRequest {
		x.want = rules.Parse(x.r.Header["Cache-Control"])
		if x.want.Malformed {
			x.want.NoCache = true // whatever it means, a fresh answer is right
		}
	}
	if x.cache.cfg.KeyInStatus {
		x.location = x.cache.names.Location(x.r)
	}
	switch method := x.r.Method; {
	case !safe(method):
		x.serveUnsafe()
	case method != http.MethodGet && method != http.MethodHead:
		x.passThrough("method")
	case x.cache.names.TooLong(x.r):
		x.bypass(limited)
	case x.personal(), x.cache.cfg.Bypass != nil && x.cache.cfg.Bypass(x.r):
		x.bypass("")
	case x.want.NoStore && !x.want.OnlyIfCached:
		x.passThrough("request")
	default:
		x.serveCached()
	}
}

// safe reports whether IANA's registry says that a method changes nothing.
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "PRI", "PROPFIND", "QUERY", "REPORT", "SEARCH":
		return true
	}
	return false
}

// personal reports whether no other request could share the answer: the request has a body or an upgrade, or a condition that only the
// handler may evaluate (RFC 9111 section 4.3.2), or is odd.
func (x *exchange) personal() bool {
	h := x.r.Header
	return x.r.ContentLength != 0 || len(x.r.TransferEncoding) > 0 || len(h["Upgrade"]) > 0 && !upgradesToH2C(h) ||
		len(h["If-Match"]) > 0 || len(h["If-Unmodified-Since"]) > 0 || x.cache.names.Odd(x.r) || dropsFields(h)
}

// upgradesToH2C reports whether the request asks for an upgrade to h2c only. A server may ignore that, and RFC 9113 has given it up.
func upgradesToH2C(h http.Header) bool {
	return len(h["Upgrade"]) == 1 && strings.EqualFold(strings.TrimSpace(h["Upgrade"][0]), "h2c")
}

// dropsFields reports whether Connection may name an end-to-end field of the request. A proxy behind the cache drops that field, and the
// response is then not the one for the values that were sent.
func dropsFields(h http.Header) bool {
	return rules.IsLong(h["Connection"]) || slices.ContainsFunc(rules.Names(h["Connection"]), func(name string) bool {
		return len(h[name]) > 0 && name != "Http2-Settings" && !rules.IsHopByHop(name)
	})
}

// selects reports whether the request may have what a record says. What was set in front counts as if the handler had set it for this request.
func (x *exchange) selects(rec *record.Record) bool {
	return x.cache.names.Selects(rec, x.r, x.unnamed, x.varies) &&
		!(x.forbidden && rec.IsResponse() && x.cache.rules.Forbids(writer.Final(x.front, rec, rec.HTTPHeader())))
}

// now returns the time by which pages age.
func (x *exchange) now() time.Time { return x.cache.clock.Now() }

// passThrough lets the handler answer for this request alone.
func (x *exchange) passThrough(why string) { x.passThroughAs(cachestatus.Forward{Why: why}) }

// bypass passes a request through that the cache does not answer.
func (x *exchange) bypass(detail string) {
	if x.want.OnlyIfCached {
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
		return
	}
	x.passThroughAs(cachestatus.Forward{Why: "bypass", Detail: detail})
}

func (x *exchange) passThroughAs(f cachestatus.Forward) {
	began := x.now()
	x.callHandler(passedFor(f.Detail), func(status int) {
		if x.checked != nil {
			x.checked.checkMark(status, x.w.Header(), began)
		}
		x.setStatus(f)
	})
}

// serveUnsafe lets the handler answer, and invalidates what it has changed before the client learns of it. By then, the handler may have
// made another URL of the one that the client asked for.
func (x *exchange) serveUnsafe() {
	base, keys := x.cache.names.Base(x.r), x.cache.names.Keys(x.r)
	x.callHandler(Passed, func(status int) {
		f := cachestatus.Forward{Why: "method"}
		if status >= 200 && status < 400 && x.cache.invalidates(x.r.Method) {
			if x.res.NotInvalidated = x.invalidateAfter(base, keys, x.w.Header()); x.res.NotInvalidated != nil {
				f.Detail = "not-invalidated"
			}
		}
		x.setStatus(f)
	})
}

// passedFor is how a request was answered whose response is not stored for that reason.
func passedFor(detail string) Result {
	if detail == limited {
		return Refused
	}
	return Passed
}

// callHandler lets the handler answer. Before is called when the header is about to be sent.
func (x *exchange) callHandler(how Result, before func(status int)) {
	x.res.Result = how
	w := &writer.PassThrough{ResponseWriter: x.w, Before: before, Hidden: x.cache.hidden}
	x.next.ServeHTTP(w, x.r)
	w.Finish()
	x.res.Status, x.res.Route = w.Status, route(x.r)
}

// identify computes what tells pages apart for this request.
func (x *exchange) identify() {
	if h := x.w.Header(); len(h) > 0 {
		x.front = writer.Canonical(h)
		x.varies, x.forbidden = canonical.VaryFields(nil, x.front), x.cache.rules.Forbids(x.front)
	}
	host := x.r.Host
	x.r = x.cache.names.Request(x.r)
	x.key, x.location = x.cache.names.Page(x.r)
	x.unnamed = x.cache.names.Unnamed(x.r, host)
	x.searchPath()
}

// serveCached answers from the cache, or with a page that is made for it.
func (x *exchange) serveCached() {
	x.identify()
	if canonical.OverridesMethod(x.r, x.unnamed) { // what changes something must reach the handler each time
		x.bypass("")
		return
	}
	defer func() {
		if x.checked != nil {
			close(x.checked.markHolds) // nothing more will be said about it, even if the handler panicked
		}
	}()
	x.answer(x.find())
}

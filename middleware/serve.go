package middleware

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// Handler puts the Cache in front of next. It is a middleware as chi's Use takes it.
//
// Middlewares that depend on the user (authentication), or that add fields to each response that must not be shared, belong in front
// of the Cache. Middlewares that compress belong behind it.
//
// Next may run after its request has been answered, and is called with GET for a HEAD. A router that reuses its contexts (gin, Echo) or
// chooses handlers by the method therefore belongs behind the Cache as a whole. Chi and http.ServeMux may stand on either side.
func (c *Cache) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.warms.Load() && r.Context().Value(warmed{c}) != nil {
			next.ServeHTTP(w, r) // Warm was given the service, with the Cache in it
			return
		}
		x := &exchange{request: request{cache: c, r: r, next: next}, w: w}
		if c.cfg.OnResponse != nil || c.seen.Load() != nil {
			defer x.report(time.Now())
		}
		x.serve()
		x.returned = true
		writer.Hide(w.Header(), c.hidden) // in trailers
	})
}

// identify computes what tells pages apart for this request, with what was set in front.
func (x *request) identify(front http.Header) {
	if len(front) > 0 {
		x.front = writer.Canonical(front)
		x.varies, x.forbidden = canonical.VaryFields(nil, x.front), x.cache.rules.Forbids(x.front)
	}
	host := hostReadInFront(x.r)
	x.r = x.cache.names.Request(x.r)
	x.key, x.location = x.cache.names.Page(x.r)
	x.unnamed = x.cache.names.Unnamed(x.r, host)
	if search := &x.cache.search; search.Any() {
		x.searchBy(search.Of(x.location))
	}
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
	case !rules.IsSafe(method):
		x.serveUnsafe()
	case method != http.MethodGet && method != http.MethodHead:
		x.callHandler(Passed, func(int) { x.setStatus(cachestatus.Forward{Why: "method"}) })
	case x.cache.names.TooLong(x.r):
		x.bypass(limited)
	case x.personal(), x.cache.cfg.Bypass != nil && x.cache.cfg.Bypass(x.r):
		x.bypass("")
	case x.want.NoStore && !x.want.OnlyIfCached:
		x.passThrough("request", "")
	default:
		x.serveCached()
	}
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

// serveUnsafe lets the handler answer, and invalidates what it has changed before the client learns of it. By then, the handler may have
// made another URL of the one that the client asked for.
func (x *exchange) serveUnsafe() {
	asked := x.cache.names.Asked(x.r)
	x.callHandler(Passed, func(status int) {
		f := cachestatus.Forward{Why: "method"}
		if status >= 200 && status < 400 && x.cache.invalidates(x.r.Method) {
			if x.res.NotInvalidated = x.cache.invalidateAfter(x.r.Context(), asked, x.w.Header()); x.res.NotInvalidated != nil {
				f.Detail = "not-invalidated"
			}
		}
		x.setStatus(f)
	})
}

// serveCached answers from the cache, or with a page that is made for it.
func (x *exchange) serveCached() {
	x.identify(x.w.Header())
	if canonical.OverridesMethod(x.r, x.unnamed) { // what changes something must reach the handler each time
		x.bypass("")
		return
	}
	defer func() {
		if x.checked != nil {
			close(x.checked.markHolds) // nothing more will be said about it, even if the handler panicked
		}
	}()
	for again := true; again; {
		l, got := x.find()
		if x.reload.late {
			panic(http.ErrAbortHandler) // net/http then shows the client that the body is not whole
		}
		again = x.answer(l, got)
	}
}

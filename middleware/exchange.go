package middleware

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// exchange is one request and its response.
type exchange struct {
	cache *Cache
	w     http.ResponseWriter
	r     *http.Request
	next  http.Handler
	began time.Time        // where somebody wants to know
	want  rules.Directives // of the request
	res   Response

	page     string        // its key
	location string        // of the page
	unnamed  []record.Pair // what tells it apart although no Vary names it
	due      *lookup       // it found a mark whose time is up: see lookup.told
	anew     *anew         // the handler does not have the slices any more that were found; nil: it is not known

	first lookup           // most have no other
	lines [ownLines]string // the values of the fields that it sets itself: see line
}

// serve decides whether the cache has anything to do with the request.
func (x *exchange) serve() {
	if !x.cache.cfg.IgnoreRequest {
		x.want = rules.Parse(x.r.Header["Cache-Control"])
		if x.want.Malformed {
			x.want.NoCache = true // whatever was meant, a fresh answer is right
		}
	}
	switch method := x.r.Method; {
	case slices.Contains(safeMethods, method):
		x.forward("method")
	case method != http.MethodGet && method != http.MethodHead:
		x.unsafe()
	case x.personal() && x.want.OnlyIfCached:
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
	case x.personal():
		x.forward("bypass")
	case x.want.NoStore && !x.want.OnlyIfCached:
		x.forward("request")
	default:
		x.look()
	}
}

// safeMethods change nothing, and what they get is not stored (the others of IANA's registry that are safe are GET and HEAD).
var safeMethods = []string{http.MethodOptions, http.MethodTrace, "PRI", "PROPFIND", "QUERY", "REPORT", "SEARCH"}

// personal reports whether the request is none that others could share the answer to: it has a body or an upgrade, or a
// condition that only the handler may judge (RFC 9111 section 4.3.2), or is odd.
func (x *exchange) personal() bool {
	h := x.r.Header
	return x.r.ContentLength != 0 || len(x.r.TransferEncoding) > 0 || len(h["Upgrade"]) > 0 && !upgradesInVain(h) ||
		len(h["If-Match"]) > 0 || len(h["If-Unmodified-Since"]) > 0 || odd(x.r) || dropsFields(h)
}

// upgradesInVain reports whether the only upgrade that is asked for is h2c, which a server may ignore and RFC 9113 has given up.
func upgradesInVain(h http.Header) bool {
	return len(h["Upgrade"]) == 1 && strings.EqualFold(strings.TrimSpace(h["Upgrade"][0]), "h2c")
}

// dropsFields reports whether Connection names a field of the request that is not for the connection. A proxy behind drops it,
// and then the response is not the one for the values that were sent.
func dropsFields(h http.Header) bool {
	return slices.ContainsFunc(rules.Names(h["Connection"]), func(name string) bool {
		return len(h[name]) > 0 && name != "Http2-Settings" && !rules.IsHopByHop(name)
	})
}

// forward has the handler answer, without the cache.
func (x *exchange) forward(why string) { x.forwardFor(forwarded{why: why}) }

func (x *exchange) forwardFor(f forwarded) {
	x.res.Result = Passed
	began := time.Now()
	x.run(&passing{ResponseWriter: x.w, before: func(status int) {
		if x.due != nil {
			x.due.tell(status, x.w.Header(), began)
		}
		x.status(f.String())
	}})
}

// run calls the handler.
func (x *exchange) run(w *passing) {
	x.next.ServeHTTP(w, x.r)
	w.finish()
	x.res.Status, x.res.Route = w.status, route(x.r)
}

// unsafe has the handler answer, and invalidates what it has changed before the client hears of it.
func (x *exchange) unsafe() {
	x.res.Result = Passed
	x.run(&passing{ResponseWriter: x.w, before: func(status int) {
		x.status(fwd("method"))
		if status >= 200 && status < 400 {
			x.invalidateAfter(x.w.Header())
		}
	}})
}

// look answers from the cache, or has the page made for it.
func (x *exchange) look() {
	cfg := &x.cache.cfg
	x.page, x.location = cfg.pageAt(cfg.placeOf(x.r))
	x.unnamed = cfg.unnamedOf(x.r)
	defer func() {
		if x.due != nil {
			close(x.due.told) // nothing more is said, whatever became of the handler
		}
	}()
	x.answer(x.find())
}

// find gets the record that the request selects.
func (x *exchange) find() (*lookup, fetched) {
	l, got := x.fetch(variant{}, "uri-miss")
	if got.err == nil && got.own == nil && !got.mine {
		l, got = x.fetch(variantOf(got.rec, x), "vary-miss")
	}
	return l, got
}

// variant is one of the variants of a page, or, when it has no page, the page itself.
type variant struct {
	page   string        // the id of the page
	fields []string      // by which its variants are told apart
	values []record.Pair // of these, in the request
}

func variantOf(page *record.Record, x *exchange) variant {
	fields := namedFields(page)
	return variant{page: page.ID, fields: fields, values: selection(x.r, fields, x.unnamed)}
}

// maxTries is how often a request asks again because a load that it joined was overtaken by an invalidation.
const maxTries = 3

// fetch gets the record of a page, or of a variant of it, which has not been invalidated.
func (x *exchange) fetch(v variant, why string) (l *lookup, got fetched) {
	for range maxTries {
		l = newLookup(x, v, why)
		if got = l.fetch(); got.err != nil || got.own != nil || !l.overtaken(got) {
			return l, got
		}
	}
	return l, fetched{err: cacheguard.ErrNotCached}
}

// answer sends what was found or made.
func (x *exchange) answer(l *lookup, got fetched) {
	x.res.Result = got.result()
	if got.own != nil && x.answerOwn(l, got) {
		return
	}
	switch err := got.err; {
	case err == nil && got.rec.IsResponse() && got.mine:
		x.send(l, got)
	case err == nil && got.rec.Kind == record.Failed:
		x.fail(http.StatusInternalServerError, "handler-panicked")
	case x.want.OnlyIfCached:
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
	case err == nil && got.rec.Kind == record.Passed:
		x.forwardFor(forwarded{why: l.why, detail: got.rec.Get(whyField)})
	case err == nil || errors.Is(err, cacheguard.ErrNotCached):
		x.forward(l.why)
	default:
		x.trouble(l, err)
	}
}

// answerOwn answers a request that the handler ran for, if that response is for nobody else. It reports whether it was.
func (x *exchange) answerOwn(l *lookup, got fetched) bool {
	own := got.own
	kept := got.err == nil && got.rec.IsResponse() && got.mine && !got.rec.Leftover
	switch {
	case own.unheard && kept && got.rec.Kind == record.Sliced:
		return false // the handler was stopped when it had said how large the page is
	case own.unheard && own.w.open:
		x.forwardFor(forwarded{why: l.why, detail: own.w.unfit}) // with its range, or as the HEAD it is
	case own.cutOff() && !own.sent() && (own.interrupted || l.mayStandIn(l.usable(), time.Now())):
		x.trouble(l, errInterrupted)
	case own.panicked != nil:
		panic(own.panicked)
	case own.sent():
		x.res.Status, x.res.Route = own.w.status, own.route // it has had its response
	case own.merges, own.standsIn, kept:
		return false
	case own.unheard:
		x.forwardFor(forwarded{why: l.why, detail: own.w.unfit})
	default:
		own.w.pass() // it was held back, and is for nobody else
		own.w.finish()
		x.res.Status, x.res.Route = own.w.status, own.route
	}
	return true
}

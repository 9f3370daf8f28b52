package middleware

import (
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// Cache stores responses of a handler. It is safe for concurrent use. It has nothing to close: what runs in the background
// belongs to the Guard.
type Cache struct {
	guard *cacheguard.Guard
	cfg   Config

	decoded decodings
}

// New returns a Cache that keeps its responses in the Guard. The error names every field of cfg that is out of range.
//
// Caches that share a Guard share its pages, so that routes may have Caches with settings of their own. The Guard's TTL,
// StaleFor, EarlyRefresh and Codec do not count for pages. Its Prefix, Local, MaxValueBytes, LoadTimeout (how long a handler
// may take for a response that is to be stored), WaitTimeout, MaxLoads, FailClosed and Hooks do.
func New(guard *cacheguard.Guard, cfg Config) (*Cache, error) {
	err := cfg.check()
	if guard == nil {
		err = errors.Join(errors.New("guard is nil"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	return &Cache{guard: guard, cfg: cfg.withDefaults(), decoded: decodings{seed: maphash.MakeSeed()}}, nil
}

// Handler puts the Cache in front of next. It is a middleware as chi's Use takes it. Middlewares that change the URL
// (http.StripPrefix), that decide by who asks (authentication), or that add to each response what is not to be shared, belong
// in front of it; those that compress, behind it.
func (c *Cache) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{Cache: c, w: w, r: r, next: next}
		if c.cfg.OnResponse != nil {
			x.began = time.Now()
			defer x.report()
		}
		x.serve()
	})
}

// exchange is one request and its response.
type exchange struct {
	*Cache
	w     http.ResponseWriter
	r     *http.Request
	next  http.Handler
	began time.Time  // where somebody wants to know
	want  directives // of the request
	res   Response
}

// serve decides whether the cache has anything to do with the request.
func (x *exchange) serve() {
	if !x.cfg.IgnoreRequest {
		x.want = parseDirectives(x.r.Header["Cache-Control"])
		if x.want.malformed {
			x.want.noCache = true // whatever was meant, a fresh answer is right
		}
	}
	switch method := x.r.Method; {
	case method == http.MethodOptions || method == http.MethodTrace:
		x.forward("method")
	case method != http.MethodGet && method != http.MethodHead:
		x.unsafe()
	case x.personal() && x.want.onlyIfCached:
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
	case x.personal():
		x.forward("bypass")
	case x.want.noStore && !x.want.onlyIfCached:
		x.forward("request")
	default:
		x.look()
	}
}

// personal reports whether the request is none that others could share the answer to: it has a body or an upgrade, or a
// condition that only the handler may judge (RFC 9111 section 4.3.2), or is odd.
func (x *exchange) personal() bool {
	h := x.r.Header
	return x.r.ContentLength != 0 || len(x.r.TransferEncoding) > 0 || len(h["Upgrade"]) > 0 ||
		len(h["If-Match"]) > 0 || len(h["If-Unmodified-Since"]) > 0 || odd(x.r)
}

// forward has the handler answer, without the cache.
func (x *exchange) forward(why string) { x.forwardFor(forwarded{why: why}) }

func (x *exchange) forwardFor(f forwarded) {
	x.res.Result = Passed
	x.run(&passing{ResponseWriter: x.w, before: func(int) { x.status(f.String()) }})
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
	l, got := x.fetch(pageKey(x.cfg.class(x.r), x.cfg.location(x.r)), "", "uri-miss")
	if got.err == nil && got.own == nil && !got.mine {
		page := got.rec
		l, got = x.fetch(variantKey(l.key, selection(x.r, page.fields())), page.id, "vary-miss")
	}
	x.answer(l, got)
}

// maxTries is how often a request asks again because a load that it joined was overtaken by an invalidation.
const maxTries = 3

// fetch gets the record of a page, or of a variant of the page with that id, which has not been invalidated.
func (x *exchange) fetch(key, page, why string) (l *lookup, got fetched) {
	for range maxTries {
		l = x.lookup(key, page, why)
		if got = l.fetch(); got.err != nil || got.own != nil || !l.overtaken(got) {
			return l, got
		}
	}
	return l, fetched{err: cacheguard.ErrNotCached}
}

// answer sends what was found or made.
func (x *exchange) answer(l *lookup, got fetched) {
	x.res.Result = got.result()
	switch own := got.own; {
	case own != nil && own.panicked != nil:
		panic(own.panicked)
	case own != nil && own.w.open:
		x.res.Status, x.res.Route = own.w.status, own.route // it has had its response
		return
	case own != nil && !own.merges && (got.err != nil || got.rec.kind != stored || !got.mine):
		x.res.Status, x.res.Route = own.w.status, own.route
		own.w.pass() // it was held back, and is for nobody else
		own.w.finish()
		return
	}
	switch err := got.err; {
	case err == nil && got.rec.kind == stored && got.mine:
		x.send(l, got)
	case err == nil && got.rec.kind == failed:
		x.fail(http.StatusInternalServerError, "handler-panicked")
	case x.want.onlyIfCached:
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
	case err == nil && got.rec.kind == passed:
		x.forwardFor(forwarded{why: l.why, detail: got.rec.get(whyField)})
	case err == nil || errors.Is(err, cacheguard.ErrNotCached):
		x.forward(l.why)
	default:
		x.trouble(l, err)
	}
}

// trouble answers when the Guard had no answer.
func (x *exchange) trouble(l *lookup, err error) {
	_, redisFailed := errors.AsType[*cacheguard.RedisError](err)
	_, panicked := errors.AsType[*cacheguard.PanicError](err)
	_, loadFailed := errors.AsType[*cacheguard.LoadError](err)
	switch {
	case x.r.Context().Err() != nil:
		x.res.Result = Failed // the client has left
	case redisFailed:
		x.fail(http.StatusServiceUnavailable, "redis")
	case panicked || loadFailed || isTimeout(err):
		x.fail(http.StatusGatewayTimeout, "handler")
	default: // the handler asks for its own page, or the Guard is closed
		x.forward(l.why)
	}
}

// fail answers with an error of the cache's own.
func (x *exchange) fail(status int, detail string) {
	x.res.Result, x.res.Status = Failed, status
	x.status(detailed(detail))
	x.w.Header().Set("Cache-Control", "no-store")
	http.Error(x.w, strings.ToLower(http.StatusText(status)), status)
}

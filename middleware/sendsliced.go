package middleware

import (
	"net/http"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/rules"
)

// sendSliced answers from the slices of a page. What net/http does with ranges is right for them too.
func (x *exchange) sendSliced(l *lookup, got fetched) {
	head, ranged := got.rec, strings.HasPrefix(x.r.Header.Get("Range"), "bytes=") && x.r.Method == http.MethodGet
	switch {
	case x.cache.cfg.SliceBytes == 0: // another instance has them
		x.forwardFor(forwarded{why: l.why, detail: tooLarge})
		return
	case ranged && strings.Contains(x.r.Header.Get("Range"), ","): // hardly anybody asks for several
		x.forwardFor(forwarded{why: "bypass", detail: "ranges"})
		return
	}
	now := time.Now()
	body := &slicedBody{l: l, head: head}
	w := &lateWriter{x: x, header: x.w.Header().Clone()}
	w.before = func() { x.addStatus(x.describeSliced(l, got, body, now)) }
	w.setHead(head, got.own, now)
	if conditional(x.r) && unchangedFor(x.r, head.Get) {
		notModified(w)
	} else {
		r := &http.Request{Method: x.r.Method, Header: make(http.Header)}
		if ranged {
			r.Header["Range"], r.Header["If-Range"] = x.r.Header["Range"], x.r.Header["If-Range"]
		}
		modified, _ := rules.ParseDate(head.Get("Last-Modified"), now)
		http.ServeContent(w, r, "", modified, body)
	}
	if body.err != nil {
		x.breakOff(w, body)
		return
	}
	w.begin()
	x.res.Route = head.Route
	if x.res.Result == Hit {
		x.res.Result = body.result()
	}
}

// describeSliced is what Cache-Status says of an answer from slices, by the first of them: the header is sent when that is there.
func (x *exchange) describeSliced(l *lookup, got fetched, body *slicedBody, now time.Time) string {
	result := body.result()
	if got.own != nil || result == Hit || got.result() != Hit && got.result() != Stale {
		return x.describe(l, got, now)
	}
	f := forwarded{
		why: "partial", status: http.StatusPartialContent, ttl: got.rec.Fresh(now), hasTTL: true,
		stored: result == Loaded, collapsed: result == Shared,
	}
	if result == Bypassed {
		f.detail = "redis"
	}
	return x.cache.cfg.Name + f.String()
}

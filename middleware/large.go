package middleware

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/sliced"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// tooLarge handles a response that is larger than MaxBody, once its header is known: if the page can be sliced, the header alone is
// stored. It returns why the response is not stored whole.
func (b *build) tooLarge(status int, h http.Header) (unfit string) {
	l := b.lookup
	switch {
	case l.x.cache.cfg.SliceBytes == 0:
		return writer.TooLarge
	case l.reload.isUnsliceable():
		return string(sliced.NoRanges)
	case status != http.StatusOK || !sliced.Possible(h, &b.assessed, b.received):
		return writer.TooLarge
	}
	b.route = route(b.asked)
	rec := b.recordOfHeader(record.Sliced, h.Clone()) // h goes to the client
	rec.Length, rec.Parts = rules.DeclaredSize(status, h), rand.Text()
	if old := l.usable(); old != nil && old.Kind == record.Sliced && old.Length == rec.Length && rules.SameValidator(old.Get, rec.Get) {
		rec.Parts = old.Parts // the new record has the same slices
	}
	b.head = rec
	return writer.TooLarge
}

// sendSliced answers from the slices of a page. The rules of net/http for ranges are right for it too.
func (x *exchange) sendSliced(l *lookup, got found) {
	ranged := x.wantsRange()
	several := ranged && strings.Contains(x.r.Header.Get("Range"), ",")
	switch {
	case x.want.OnlyIfCached && (several || x.cache.cfg.SliceBytes == 0):
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
		return
	case x.cache.cfg.SliceBytes == 0: // another instance made them
		x.passThroughAs(cachestatus.Forward{Why: l.why, Detail: writer.TooLarge})
		return
	case several: // hardly any client asks for several
		x.passThroughAs(cachestatus.Forward{Why: "bypass", Detail: "ranges"})
		return
	}
	now, head := x.now(), got.rec
	body := &sliced.Body{Page: l.slices(head), OnlyCached: x.want.OnlyIfCached}
	w := &writer.Late{Client: x.w, Fields: x.w.Header().Clone()}
	w.Before = func(status int) {
		x.addStatus(x.describeSliced(l, got, body, now))
		x.res.Status = status
	}
	x.setHead(w.Fields, got)
	w.Fields["Age"] = x.line(ageLine, seconds(head.Age(now)))
	w.Fields["Content-Length"] = x.line(lengthLine, strconv.FormatInt(head.Length, 10)) // ServeContent leaves it out of encoded pages
	if rules.Conditional(x.r) && rules.Unchanged(x.r, head.Get) {
		writer.NotModified(w)
	} else {
		r := &http.Request{Method: x.r.Method, Header: make(http.Header)}
		if ranged {
			r.Header["Range"], r.Header["If-Range"] = x.r.Header["Range"], x.r.Header["If-Range"]
		}
		modified, _ := rules.ParseDate(head.Get("Last-Modified"), now)
		http.ServeContent(w, r, "", modified, body)
	}
	if body.Err != nil {
		x.breakOff(l, w, body)
		return
	}
	w.Begin()
	x.res.Route = head.Route
	if x.res.Result == Hit {
		x.res.Result = Result(body.How())
	}
}

// reload says that a page must be loaded again, because its handler no longer has the slices of the record that was found. Nil: it need
// not be.
type reload struct {
	parts       string // of the page that was found
	unsliceable bool   // the page cannot be sliced, whatever it says
	late        bool   // the client has had a part of the page already: what is loaded is not for this request
}

// replaces reports whether a record is the one to be replaced. Another request may have done that already.
func (a *reload) replaces(rec *record.Record) bool {
	return a != nil && rec.Kind == record.Sliced && rec.Parts == a.parts
}

// isUnsliceable reports whether a mark is to replace the record.
func (a *reload) isUnsliceable() bool { return a != nil && a.unsliceable }

// isLate reports whether the handler does not run for this request.
func (a *reload) isLate() bool { return a != nil && a.late }

// breakOff ends an answer that lacks a slice. If nothing has been sent, it starts over and loads the page again, as it may have changed. A
// page that has not changed cannot be sliced, and a mark says so from then on.
func (x *exchange) breakOff(l *lookup, w *writer.Late, body *sliced.Body) {
	why, refused := errors.AsType[sliced.Refusal](body.Err)
	again := refused && why != sliced.Failing && !x.reload.isUnsliceable()
	if again {
		x.reload = &reload{parts: body.Page.Head.Parts, unsliceable: why == sliced.NoRanges || x.reload != nil, late: w.Begun}
	}
	switch {
	case w.Begun:
		if again {
			x.find()
		}
		x.res.Result = Failed
		panic(http.ErrAbortHandler) // net/http then shows the client that the body is not whole
	case again:
		x.answer(x.find())
	case x.want.OnlyIfCached:
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
	case refused, errors.Is(body.Err, cacheguard.ErrNotCached):
		x.passThroughAs(cachestatus.Forward{Why: "partial"})
	default:
		x.giveUp(l, body.Err)
	}
}

// describeSliced is describe for an answer from slices, by the first of them: the header is sent when that is there.
func (x *exchange) describeSliced(l *lookup, got found, body *sliced.Body, now time.Time) string {
	result := Result(body.How())
	if got.own != nil || result == Hit || got.result() != Hit && got.result() != Stale {
		return x.describe(l, got, now)
	}
	f := cachestatus.Forward{
		Why: "partial", Status: http.StatusPartialContent, TTL: got.rec.Fresh(now), HasTTL: true,
		Stored: result == Loaded, Collapsed: result == Shared,
	}
	if result == Bypassed {
		f.Detail = "redis"
	}
	return x.cache.cfg.Name + f.String()
}

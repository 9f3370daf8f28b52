package middleware

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/sliced"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// sendSliced answers from the slices of a page. It reports whether the answer has to start over.
func (x *exchange) sendSliced(l *lookup, got found) (again bool) {
	several := x.wantsRange() && strings.Contains(x.r.Header.Get("Range"), ",")
	switch {
	case x.cache.cfg.SliceBytes == 0: // another instance made them
		x.passThrough(l.why, writer.TooLarge)
		return false
	case several: // hardly any client asks for several
		x.bypass("ranges")
		return false
	}
	now, head := x.now(), got.rec
	page := &sliced.Page{
		Store: x.cache.slices, Head: head, Key: l.key, Client: x.r, Front: x.front, Handler: x.next, Ask: l.backgroundRequest,
	}
	body := &sliced.Body{Page: page, OnlyCached: x.want.OnlyIfCached}
	w := &writer.Late{Client: x.w, Fields: x.w.Header().Clone()}
	w.Before = func(status int) {
		x.addStatus(x.describeSliced(l, got, body, now))
		x.res.Status = status
	}
	x.setHead(w.Fields, got)
	w.Fields["Age"] = x.line(ageLine, seconds(head.Age(now)))
	w.Fields["Content-Length"] = x.line(lengthLine, strconv.FormatInt(head.Length, 10)) // ServeContent leaves it out of encoded pages
	if x.unchanged(head) {
		writer.NotModified(w)
	} else {
		x.sendContent(w, head, body)
	}
	if body.Err != nil {
		return x.breakOff(l, w, body)
	}
	w.Begin()
	x.res.Route = head.Route
	if x.res.Result == Hit {
		x.res.Result = Result(body.How())
	}
	return false
}

// breakOff ends an answer that lacks a slice. The page is loaded again, as it may have changed, and if nothing has been sent, the answer
// starts over. A page that has not changed cannot be sliced, and a mark says so from then on.
func (x *exchange) breakOff(l *lookup, w *writer.Late, body *sliced.Body) (again bool) {
	var why sliced.Refusal
	refused := errors.As(body.Err, &why)
	again = refused && why != sliced.Failing && !x.reload.unsliceable
	if w.Begun {
		x.res.Result = Failed
	}
	switch {
	case again:
		x.reload = reload{parts: body.Page.Head.Parts, unsliceable: why == sliced.NoRanges || x.reload.parts != "", late: w.Begun}
	case w.Begun:
		panic(http.ErrAbortHandler) // net/http then shows the client that the body is not whole
	case refused, errors.Is(body.Err, cacheguard.ErrNotCached):
		x.passThrough("partial", "")
	default:
		x.trouble(l, body.Err, nil)
	}
	return again
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

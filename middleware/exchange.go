package middleware

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// exchange is one request and its response. What is not the request belongs to its goroutine.
type exchange struct {
	request

	w       http.ResponseWriter
	res     Response
	checked *lookup // found a mark whose time is up: see mark.go
	marked  *lookup // found a mark, or its load made one
	reload  reload  // the handler does not have the slices that were found: see large.go

	returned bool // nothing panicked

	first lookup           // most requests need no other
	lines [ownLines]string // the values of the fields that the exchange itself sets: see line
}

// report counts the request and calls Config.OnResponse, also when the handler panics, wherever it ran.
func (x *exchange) report(began time.Time) {
	panicked := recover()
	x.res.Took = time.Since(began)
	if x.res.Result == "" || !x.returned && !x.wasLeft(panicked) {
		x.res.Result = Failed
	}
	if x.res.Route == "" && x.res.Result == Failed {
		x.res.Route = foreseen(x.r, x.next)
	}
	if isOff := x.res.NotStored == switchedOff; isOff != (x.res.Result == Bypassed) || !isOff && x.res.Result != Passed && x.res.Result != Refused {
		x.res.NotStored = ""
	}
	x.cache.count(&x.res, x.r.URL.Path)
	if x.cache.cfg.OnResponse != nil {
		x.cache.cfg.OnResponse(x.r, x.res)
	}
	if panicked != nil {
		panic(panicked)
	}
}

// wasLeft reports whether the handler gave up because its client had left, as ReverseProxy does: that is no failure. When an origin breaks off,
// the client is still there.
func (x *exchange) wasLeft(panicked any) bool {
	return panicked == http.ErrAbortHandler && errors.Is(x.r.Context().Err(), context.Canceled) //nolint:errorlint // this very error
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

// The fields that an exchange sets itself, each with one value.
const (
	ageLine = iota
	statusLine
	lengthLine
	ownLines
)

// line returns the value of such a field as a slice, in memory that belongs to the exchange.
func (x *exchange) line(field int, value string) []string {
	x.lines[field] = value
	return x.lines[field : field+1 : field+1]
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// bypass passes a request through that the cache does not answer.
func (x *exchange) bypass(detail string) { x.passThrough("bypass", detail) }

// passThrough lets the handler answer for this request alone. Detail is why the response is not stored.
func (x *exchange) passThrough(why, detail string) {
	if x.want.OnlyIfCached {
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
		return
	}
	x.res.NotStored = detail
	began, mended := x.now(), false
	x.callHandler(passedFor(detail), func(status int) {
		if x.checked != nil {
			x.checked.checkMark(status, x.w.Header(), began)
		}
		if x.marked != nil {
			detail, mended = x.marked.mends(detail, status, x.w.Header(), began)
			x.res.NotStored = detail
		}
		x.setStatus(cachestatus.Forward{Why: why, Detail: detail})
	})
	if mended && x.checked == nil {
		_ = x.cache.guard.Invalidate(x.r.Context(), x.marked.key) // if it fails, the mark ends when its time is up
	}
}

// callHandler lets the handler answer. Before is called when the header is about to be sent.
func (x *exchange) callHandler(how Result, before func(status int)) {
	x.res.Result = how
	w := &writer.PassThrough{ResponseWriter: x.w, Before: before, Hidden: x.cache.hidden}
	defer func() { x.res.Status, x.res.Route = w.Status, route(x.r) }() // also of a handler that panics
	x.next.ServeHTTP(w, x.r)
	w.Finish()
}

// fail answers with an error of the cache's own.
func (x *exchange) fail(status int, detail string) {
	x.res.Result, x.res.Status = Failed, status
	x.addStatus(x.cache.cfg.Name + cachestatus.Detail(detail))
	x.w.Header().Set("Cache-Control", "no-store")
	http.Error(x.w, strings.ToLower(http.StatusText(status)), status)
}

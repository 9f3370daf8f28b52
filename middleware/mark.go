package middleware

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/sliced"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// A mark is a record that says that a page cannot be stored. While it holds, requests go straight to the handler. When its time is up
// (Config.PassFor), they do so for as long again, so that nobody has to wait for the check: the response to the first of them shows
// whether the page can be stored by now. Where a header shows that earlier, the mark ends at once.

// freshnessOfMark is freshness for a mark.
func freshnessOfMark(rec *record.Record, now time.Time) cacheguard.Verdict {
	switch age := now.Sub(rec.Received); {
	case age < rec.Until:
		return cacheguard.Serve
	case age < 2*rec.Until:
		return cacheguard.Refresh
	}
	return cacheguard.Replace
}

// checkMark learns from a response that passed through whether the mark still holds. A partial response shows how large the page is.
func (l *lookup) checkMark(status int, h http.Header, began time.Time) {
	cache := l.x.cache
	h, holds := l.judged(status, h)
	switch {
	case status >= 400, status == http.StatusNotModified, status == http.StatusPartialContent && !holds:
		return
	case !holds:
		holds = l.x.assess(status, h, began, l.x.now()).Unfit != ""
	case cache.cfg.SliceBytes > 0 && l.previous.Why() != string(sliced.NoRanges):
		now := l.x.now()
		assessed := l.x.assess(http.StatusOK, h, began, now)
		holds = !sliced.Possible(h, &assessed, now)
	}
	select {
	case l.markHolds <- holds:
	default: // it is known already
	}
}

// mends corrects the detail of a response that passed through because of a mark, by the response's own header, and reports whether that could be
// stored: then the mark ends. What only a body showed, no header refutes.
func (l *lookup) mends(why string, status int, h http.Header, began time.Time) (detail string, mended bool) {
	if !slices.Contains(shownByHeader, why) || status >= 400 || status == http.StatusNotModified || status == http.StatusPartialContent {
		return why, false
	}
	h, tooLarge := l.judged(status, h)
	if detail = l.x.assess(status, h, began, l.x.now()).Unfit; detail == "" && tooLarge {
		detail = writer.TooLarge
	}
	return detail, detail == ""
}

// judged is the header that a response is judged by, and whether it says that its body is too large.
func (l *lookup) judged(status int, h http.Header) (corrected http.Header, tooLarge bool) {
	h = writer.Canonical(h)
	l.x.cache.rules.Correct(l.x.r, h)
	return h, rules.DeclaredSize(status, h) > int64(l.x.cache.cfg.MaxBody)
}

// shownByHeader are the reasons of a mark that each response shows by its header.
var shownByHeader = []string{"no-store", "private", "authorization", "set-cookie", "vary", "status", "stale", "no-lifetime"}

// renewMark keeps a mark whose time is up, if the response of the request that found it could not be stored either.
func (l *lookup) renewMark(ctx context.Context) ([]byte, error) {
	var holds bool
	select {
	case holds = <-l.markHolds: // closed: the response did not show it
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	same, keep := *l.previous, time.Duration(0)
	if holds {
		same.Received, keep = l.x.now(), 2*same.Until
	}
	return l.x.cache.stores(ctx, &same, keep), nil
}

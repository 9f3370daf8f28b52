package middleware

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// A page that is larger than MaxBody may be kept in slices: its record is the header alone, which is judged, validated, selected
// and invalidated as a page is, and the slices are records of their own, which name the header's record by an id.

// slice decides what becomes of a response that is larger than MaxBody. It is called once its header is known, and returns why the
// whole is not stored.
func (out *run) slice(status int, h http.Header) (unfit string) {
	l := out.l
	switch {
	case l.x.cache.cfg.SliceBytes == 0:
		return tooLarge
	case l.anew.passes():
		return noRanges
	case status != http.StatusOK || !canBeSliced(h, &out.terms, out.received):
		return tooLarge
	}
	out.route = route(out.asked)
	rec := out.recordOf(record.Sliced, h.Clone()) // the other goes to the client
	rec.Length, rec.Parts = declared(status, h), rand.Text()
	if old := l.usable(); old != nil && old.Kind == record.Sliced && old.Length == rec.Length && sameValidator(old.Get, rec.Get) {
		rec.Parts = old.Parts // they are its slices too
	}
	out.head = rec
	return tooLarge
}

// canBeSliced reports whether parts of a response may be stored and put together (RFC 9111 sections 3.3 and 3.4).
func canBeSliced(h http.Header, terms *rules.Assessment, received time.Time) bool {
	_, typed := h["Content-Type"] // nobody sees the whole, to tell
	name, _ := strongValidator(h.Get, received)
	return typed && name != "" && terms.Unfit == "" && terms.Explicit && len(h["Trailer"]) == 0 &&
		!slices.Contains(rules.List(h["Accept-Ranges"]), "none") &&
		!slices.Contains(rules.Names(h["Vary"]), "Range") // each range would be one of another page
}

// sliceable reports whether a response that went past the cache, which is larger than MaxBody, is one of a page that can be sliced.
func (l *lookup) sliceable(h http.Header, began time.Time) bool {
	now := time.Now()
	terms := l.x.cache.cfg.rules.Assess(l.x.r, rules.Reply{Status: http.StatusOK, Header: h, Sent: began, Received: now})
	return canBeSliced(h, &terms, now)
}

// sure is how much older than its Date a Last-Modified has to be to count as a strong validator (RFC 9110 section 8.8.2.2).
const sure = time.Minute

// strongValidator is the field by which parts of a response show that they are parts of the same; none: there is no such field.
func strongValidator(get func(string) string, received time.Time) (name, value string) {
	if etag := get("Etag"); etag != "" {
		if len(etag) > 1 && strings.HasPrefix(etag, `"`) && strings.HasSuffix(etag, `"`) {
			return "Etag", etag
		}
		return "", ""
	}
	sent, ok := rules.ParseDate(get("Date"), received)
	if !ok {
		sent = received
	}
	value = get("Last-Modified")
	if modified, ok := rules.ParseDate(value, received); ok && !modified.Add(sure).After(sent) {
		return "Last-Modified", value
	}
	return "", ""
}

// sameValidator reports whether two responses show by the same strong validator that they have the same body.
func sameValidator(a, b func(string) string) bool {
	now := time.Now()
	nameA, valueA := strongValidator(a, now)
	nameB, valueB := strongValidator(b, now)
	return nameA != "" && nameA == nameB && valueA == valueB
}

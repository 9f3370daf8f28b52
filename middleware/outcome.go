package middleware

import (
	"crypto/rand"
	"net/http"
	"slices"
	"time"

	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// wrongMethod is why a response is not stored, beside the words of rules, writer and sliced.
const wrongMethod = "method"

// result is the record of a build, and how long to keep it.
func (b *build) result() (*record.Record, time.Duration) {
	select {
	case <-b.done:
		return b.rec, b.keep
	default: // the response has been released to its client, and goes on
		if b.head != nil {
			return b.headAlone()
		}
		return b.instead(record.PassThrough)
	}
}

// outcome makes the record when the handler has returned.
func (b *build) outcome() (*record.Record, time.Duration) {
	settings := b.lookup.x.cache.rules
	switch {
	case b.head != nil: // even if the body broke off
		return b.headAlone()
	case b.panicked != nil:
		return b.instead(record.Failed)
	case b.standsIn && b.validate == nil: // for its own request alone
		return b.instead(record.PassThrough)
	case b.standsIn:
		rec := *b.validate
		rec.StandsIn = true
		return &rec, settings.Remaining(b.validate, b.received)
	case b.confirmed:
		return b.rec, settings.Keep(&b.rec.Terms, b.rec.HTTPHeader())
	case b.w.IsReleased() || b.w.Hijacked:
		return b.instead(record.PassThrough)
	case !b.isComplete():
		b.w.Unfit = writer.Incomplete // Cache-Status says so
		return b.instead(record.PassThrough)
	}
	b.trailer = rules.TrailerOf(b.w.Sent, b.w.Header())
	stored, unfit := settings.StoredTrailer(b.trailer, b.w.Sent, b.assessed.Without)
	if unfit != "" {
		b.w.Unfit = unfit
		return b.instead(record.PassThrough)
	}
	rec := b.record()
	rec.Trailer = stored
	if b.refused != "" {
		return rec, 0
	}
	return rec, settings.Keep(&b.assessed.Terms, b.w.Sent)
}

// headAlone is the record of a page in slices, and how long to keep it.
func (b *build) headAlone() (*record.Record, time.Duration) {
	return b.head, b.lookup.x.cache.rules.Keep(&b.head.Terms, b.w.Sent)
}

// instead returns what is kept in place of a response that may not be stored. The previous record stays as long as it may be of use: a
// request that provokes an error, or a response for itself alone, must not take the page from the others. An error never makes a mark,
// nor does a response to anything but GET.
func (b *build) instead(kind record.Kind) (*record.Record, time.Duration) {
	l, status, now := b.lookup, b.w.Status, b.lookup.x.now()
	if b.moved && b.w.Unfit == otherSearch {
		rec, _ := b.mark(record.Moved, 0)
		rec.Header = append(rec.Header, record.Pairs(b.w.Sent, func(name string) bool { return name != "No-Vary-Search" })...)
		return rec, l.x.cache.rules.Keep(&b.assessed.Terms, b.w.Sent)
	}
	failed := kind == record.Failed || status >= 400 || status == 0 && !b.w.Hijacked
	if previous := l.usable(); previous != nil && (failed || previous.Servable(now)) {
		if keep := l.x.cache.rules.Remaining(previous, now); keep > 0 {
			rec := *previous
			rec.Leftover, rec.StandsIn = true, kind == record.Failed && l.x.mayStandIn(previous, now)
			return &rec, keep
		}
	}
	if failed || b.w.Unfit == wrongMethod || b.w.Unfit == otherSearch || b.w.Unfit == writer.Incomplete {
		return b.mark(kind, 0)
	}
	return b.mark(kind, l.x.cache.cfg.PassFor)
}

// mark makes a record without a response. It is valid for the variant that the request selects: by the fields that the response names, by
// the ones that tell the variants of the page apart, and by what no Vary names.
func (b *build) mark(kind record.Kind, until time.Duration) (*record.Record, time.Duration) {
	l := b.lookup
	fields := l.variant.fields
	if l.variant.of == nil {
		fields = canonical.VaryFields(b.w.Sent, l.x.front)
		if l.previous != nil && !l.revoked {
			fields = append(fields, canonical.NamedFields(l.previous)...)
		}
		fields = slices.DeleteFunc(rules.Sorted(fields), func(name string) bool { return name == "*" })
	}
	rec := &record.Record{
		Kind: kind, ID: rand.Text(), Page: l.variant.page(), Location: l.x.location, Received: l.x.now(), Until: until,
		Vary: l.x.cache.names.Selection(l.x.r, fields, l.x.unnamed),
	}
	if b.w.Unfit != "" {
		rec.SetWhy(b.w.Unfit)
	}
	if len(b.trailer) > 0 {
		rec.Trailer = rec.Header // that showed it
	}
	b.keepID(rec)
	return rec, 2 * until
}

// record describes a response that may be stored, without its trailer.
func (b *build) record() *record.Record {
	h := b.w.Sent
	if _, typed := h["Content-Type"]; !typed && len(b.w.Body) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(b.w.Body))
	}
	rec := b.recordOfHeader(record.Stored, h)
	rec.Body = b.w.Body
	return rec
}

// recordOfHeader is the record of a response, without what follows its header.
func (b *build) recordOfHeader(kind record.Kind, h http.Header) *record.Record {
	x := b.lookup.x
	rec := &record.Record{
		Kind: kind, ID: rand.Text(), Page: b.lookup.variant.page(), Location: x.location, Route: b.route,
		Status: b.w.Status, Received: b.received, Terms: b.assessed.Terms,
	}
	rec.Vary = x.cache.names.VaryOf(rec, x.r, canonical.VaryFields(h, x.front), x.unnamed)
	if _, ok := rules.ParseDate(h.Get("Date"), b.received); !ok {
		h.Set("Date", b.received.UTC().Format(http.TimeFormat))
	}
	skip, trailer := rules.Unstorable(h, b.assessed.Without), rules.Trailers(h)
	own, did := writer.Own(x.front, h)
	rec.Front = did
	taggedInFront(rec, h, own)
	rec.Header = record.Pairs(own, func(name string) bool { return skip(name) || trailer(name) })
	b.keepID(rec)
	return rec
}

// keepID gives the record the ID of the one it replaces if the same fields tell their variants apart. The variants know the page by it, as
// long as they need it.
func (b *build) keepID(rec *record.Record) {
	if previous := b.lookup.previous; previous != nil && slices.Equal(canonical.NamedFields(previous), canonical.NamedFields(rec)) {
		rec.ID, rec.Old, rec.Softened, rec.Variants = previous.ID, previous.Old, previous.Softened, max(0, previous.Variants-rec.Received.Sub(previous.Received))
	}
}

// renew reports whether a 304 confirms the stale record, and makes the record of what the response is now. It does not if it is about another
// response than the stored one (RFC 9111 section 4.3.4), or if a cookie or private shows that the response is by now for this client alone.
func (b *build) renew() (confirmed bool) {
	if !rules.Confirms(b.w.Sent, b.validate) {
		return false
	}
	x, rec := b.lookup.x, *b.validate
	own, _ := writer.Own(x.front, b.w.Sent)
	h := rules.Updated(b.validate, own, b.assessed.Without, b.received)
	final := writer.Final(x.front, b.validate, h)
	rec.Received, rec.Page, rec.StandsIn, rec.Leftover = b.received, b.lookup.variant.page(), false, false
	assessed := x.assess(rec.Status, final, b.began, b.received)
	// Slices are known by the validator of their page.
	if assessed.Unfit != "" || rec.Kind == record.Sliced && !rules.SameValidator(b.validate.Get, h.Get) || !b.fitsSearch(h) {
		return false
	}
	rec.Terms = assessed.Terms
	rec.Header = record.Pairs(h, rules.Unstorable(h, assessed.Without))
	rec.Vary = x.cache.names.VaryOf(&rec, x.r, canonical.VaryFields(final, x.front), x.unnamed)
	b.keepID(&rec)
	b.rec, b.assessed = &rec, assessed
	return true
}

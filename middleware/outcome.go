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

// result is the record of a run, and for how long it is to be kept.
func (out *run) result() (*record.Record, time.Duration) {
	select {
	case <-out.done:
		return out.rec, out.keepFor
	default: // it has gone to its client, and goes on
		if out.head != nil {
			return out.headAlone()
		}
		return out.instead(record.Passed)
	}
}

// headAlone is the record of a page in slices, and for how long it is kept.
func (out *run) headAlone() (*record.Record, time.Duration) {
	return out.head, out.l.x.cache.cfg.rules.Keep(&out.head.Terms, out.w.sent)
}

// outcome makes the record when the handler has returned.
func (out *run) outcome() (*record.Record, time.Duration) {
	switch {
	case out.head != nil: // a body that broke off makes no difference
		return out.headAlone()
	case out.panicked != nil:
		return out.instead(record.Failed)
	case out.standsIn:
		rec, keep := out.l.remaining(out.old)
		rec.StandsIn = true
		return rec, keep
	case out.merges:
		m := out.merged()
		rec := m.rec
		out.terms = m.terms
		return rec, out.l.x.cache.cfg.rules.Keep(&rec.Terms, rec.HTTPHeader())
	case out.w.open || out.w.hijacked:
		return out.instead(record.Passed)
	case !out.complete():
		out.w.unfit = "incomplete" // whoever passes it on says so
		return out.instead(record.Passed)
	}
	rec := out.record()
	return rec, out.l.x.cache.cfg.rules.Keep(&out.terms.Terms, out.w.sent)
}

// instead is what is kept instead of a response that may not be stored. What was there stays for as long as it may be of use: one
// who asks for a new response in a way that makes an error, or one for itself alone, must not take the page from the others. And
// no mark is learnt from an error, nor from what was not a GET.
func (out *run) instead(kind record.Kind) (*record.Record, time.Duration) {
	status, now := out.w.status, time.Now()
	failed := kind == record.Failed || status >= 400 || status == 0 && !out.w.hijacked
	if old := out.l.usable(); old != nil && (failed || servable(old, now)) {
		rec, keep := out.l.remaining(old)
		rec.Leftover, rec.StandsIn = true, kind == record.Failed && out.l.mayStandIn(old, now)
		if keep > 0 {
			return rec, keep
		}
	}
	if failed || out.w.unfit == "method" || out.w.unfit == "incomplete" {
		return out.mark(kind, 0)
	}
	return out.mark(kind, out.l.x.cache.cfg.PassFor)
}

// servable reports whether a record may be served as it is: it is fresh, or may be stale.
func servable(old *record.Record, now time.Time) bool {
	fresh := old.Fresh(now)
	return !old.Terms.NoCache && (fresh > 0 || !old.Terms.Strict && -fresh < old.Terms.SWR)
}

// whyField is the only field of what is kept instead of a response: why it was not stored.
const whyField = "Why"

// remaining is a record, for as long as it would have been kept anyway.
func (l *lookup) remaining(old *record.Record) (*record.Record, time.Duration) {
	same := *old
	return &same, l.x.cache.cfg.rules.Keep(&old.Terms, old.HTTPHeader()) - time.Since(old.Received)
}

// mark is a record without a response. It counts for the variant that the request selects: by the fields that the response names,
// those by which the page's variants are known, and what no Vary names.
func (out *run) mark(kind record.Kind, until time.Duration) (*record.Record, time.Duration) {
	l := out.l
	fields := l.variant.fields
	if l.variant.page == "" {
		fields = varyFields(out.w.sent)
		if l.old != nil && !l.revoked {
			fields = append(fields, namedFields(l.old)...)
		}
		slices.Sort(fields)
		fields = slices.DeleteFunc(slices.Compact(fields), func(name string) bool { return name == "*" })
	}
	rec := &record.Record{
		Kind: kind, ID: rand.Text(), Page: l.variant.page, Location: l.x.location, Received: time.Now(), Until: until,
		Vary: selection(l.x.r, fields, l.x.unnamed),
	}
	if out.w.unfit != "" {
		rec.Header = []record.Pair{{Name: whyField, Value: out.w.unfit}}
	}
	out.keepID(rec)
	return rec, 2 * until
}

// record is that of a response that may be stored.
func (out *run) record() *record.Record {
	h := out.w.sent
	if _, typed := h["Content-Type"]; !typed && len(out.w.body) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(out.w.body))
	}
	rec := out.recordOf(record.Stored, h)
	rec.Body = out.w.body
	trailer := rules.Trailers(h)
	rec.Trailer = record.Pairs(out.w.header, func(name string) bool { return !trailer(name) })
	for i, p := range rec.Trailer {
		rec.Trailer[i].Name = strings.TrimPrefix(p.Name, http.TrailerPrefix)
	}
	return rec
}

// recordOf is the record of the response without what comes after its header.
func (out *run) recordOf(kind record.Kind, h http.Header) *record.Record {
	rec := &record.Record{
		Kind: kind, ID: rand.Text(), Page: out.l.variant.page, Location: out.l.x.location, Route: out.route,
		Status: out.w.status, Received: out.received, Terms: out.terms.Terms,
	}
	rec.Vary = varyOf(rec, out.l.x.r, varyFields(h), out.l.x.unnamed)
	if _, ok := rules.ParseDate(h.Get("Date"), out.received); !ok {
		h.Set("Date", out.received.UTC().Format(http.TimeFormat))
	}
	skip, trailer := rules.Unstorable(h, out.terms.Without), rules.Trailers(h)
	rec.Header = record.Pairs(h, func(name string) bool { return skip(name) || trailer(name) })
	out.keepID(rec)
	return rec
}

// keepID keeps the id of the record that is replaced, by which its variants know it, when they are still told apart by the same
// fields.
func (out *run) keepID(rec *record.Record) {
	if old := out.l.old; old != nil && slices.Equal(namedFields(old), namedFields(rec)) {
		rec.ID = old.ID
	}
}

// merged is the stale record made good by a 304, and what the response is now.
type merged struct {
	rec   *record.Record
	terms rules.Assessment
}

func (m merged) fit() bool { return m.terms.Unfit == "" }

// updated is the header of a stored response with what a later one says of it (RFC 9111 section 3.2). What the body was encoded or
// cut with stays.
func updated(old *record.Record, sent http.Header, without []string, received time.Time) http.Header {
	h := old.HTTPHeader()
	skip := rules.Unstorable(sent, without)
	for name, values := range sent {
		if !skip(name) && name != "Content-Encoding" && name != "Content-Range" {
			h[name] = values
		}
	}
	if sent.Get("Date") == "" {
		h.Set("Date", received.UTC().Format(http.TimeFormat))
	}
	if sent.Get("Age") == "" {
		h.Del("Age")
	}
	return h
}

// merged is the stale record made good by a 304.
func (out *run) merged() merged {
	h := updated(out.old, out.w.sent, out.terms.Without, out.received)
	rec := *out.old
	rec.Received, rec.Page, rec.StandsIn, rec.Leftover = out.received, out.l.variant.page, false, false
	terms := out.l.x.cache.cfg.rules.Assess(out.l.x.r, out.reply(rec.Status, h))
	if rec.Kind == record.Sliced && !sameValidator(out.old.Get, h.Get) {
		terms.Unfit = changed // its slices are known by the other
	}
	rec.Terms = terms.Terms
	rec.Header = record.Pairs(h, rules.Unstorable(h, terms.Without))
	rec.Vary = varyOf(&rec, out.l.x.r, varyFields(h), out.l.x.unnamed)
	out.keepID(&rec)
	return merged{rec: &rec, terms: terms}
}

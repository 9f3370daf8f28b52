package middleware

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
)

// load has the handler make the response, and returns the record of it.
func (l *lookup) load(ctx context.Context, old *[]byte) ([]byte, error) {
	if old == nil {
		l.old = nil // what judge saw has been invalidated meanwhile
	}
	before, known := l.versionsBefore(ctx)
	out := newRun(l)
	if seat := !l.background && l.seat.take(out); seat {
		go out.serve(l.request(out.outlive(ctx), false)) // owner: the request; stop: its context; joined by seat.leave
		select {
		case <-out.w.committed:
		case <-out.done:
		case <-ctx.Done():
		}
	} else {
		out.w.out = nil
		out.serve(l.request(ctx, true))
	}
	if ctx.Err() != nil { // handlers that were told to stop return as if they were done
		return nil, fmt.Errorf("middleware: %w: %w", ctx.Err(), context.Cause(ctx))
	}
	rec, keep := out.result()
	if rec.kind == stored && (!known || !l.versionsAfter(ctx, before, rec)) {
		keep = 0
	}
	out.kept.Store(rec.kind == stored && keep > 0)
	cacheguard.SetTTL(ctx, keep)
	return rec.encode(), nil
}

// outlive is the handler's context. It ends with the load's, until the response is on its way to its client: the load is over
// then, and the context ends with the client's.
func (out *run) outlive(load context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(load))
	follow := func(leader context.Context) (stop func() bool) {
		return context.AfterFunc(leader, func() { cancel(context.Cause(leader)) })
	}
	stop := follow(load)
	out.w.leaves = func() {
		if stop() {
			stop = follow(out.r.Context())
		}
	}
	out.end = func() {
		stop()
		cancel(nil)
		out.w.leaves = func() {} // what is sent after the end needs no context
	}
	return ctx
}

// request is what the handler is asked for. It is the whole page, whatever the client has of it already; with a stale record
// at hand, it is whether that is still good. Alone: the client has been answered, and what it brought may be in use again.
func (l *lookup) request(ctx context.Context, alone bool) *http.Request {
	if alone && l.route != nil {
		ctx = context.WithValue(ctx, chi.RouteCtxKey, l.route.Clone())
	}
	r := l.r.WithContext(ctx)
	r.Header = l.r.Header.Clone()
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"} {
		r.Header.Del(name)
	}
	if alone {
		r.Body = http.NoBody
	}
	if old := l.usable(); old != nil {
		setIf(r.Header, "If-None-Match", old.get("Etag"))
		setIf(r.Header, "If-Modified-Since", old.get("Last-Modified"))
	}
	return r
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// result is the record of a run, and for how long it is to be kept.
func (out *run) result() (*record, time.Duration) {
	select {
	case <-out.done:
		return out.rec, out.keepFor
	default:
		return out.unfit(out.w.status, out.w.unfit) // it has gone to its client, and goes on
	}
}

// outcome makes the record when the handler has returned.
func (out *run) outcome() (*record, time.Duration) {
	switch {
	case out.panicked != nil:
		return out.mark(failed, 0)
	case out.standsIn:
		rec, keep := out.remaining(out.old)
		rec.standsIn = true
		return rec, keep
	case out.merges:
		rec := out.merged()
		return rec, rec.terms.keep(&out.cfg, rec.headerOf())
	case out.w.open || out.w.hijacked:
		return out.unfit(out.w.status, out.w.unfit)
	case !out.complete():
		out.w.unfit = "incomplete" // whoever passes it on says so
		return out.unfit(out.w.status, out.w.unfit)
	}
	rec := out.record()
	return rec, out.terms.keep(&out.cfg, out.w.sent)
}

// unfit is what is kept instead of a response that may not be stored. What a client had replaced before its time stays: one
// who asks for a new response in a way that makes an error, or one for itself alone, must not take the page from the others.
func (l *lookup) unfit(status int, why string) (*record, time.Duration) {
	switch old := l.usable(); {
	case old != nil && !old.terms.noCache && old.fresh(time.Now()) > 0:
		return l.remaining(old)
	case status >= 500:
		return l.mark(passed, 0) // another try may do better
	}
	rec, keep := l.mark(passed, l.cfg.PassFor)
	rec.header = []pair{{whyField, why}}
	return rec, keep
}

// whyField is the only field of what is kept instead of a response: why it was not stored.
const whyField = "Why"

// remaining is a record, for as long as it would have been kept anyway.
func (l *lookup) remaining(old *record) (*record, time.Duration) {
	same := *old
	return &same, old.terms.keep(&l.cfg, old.headerOf()) - time.Since(old.received)
}

// mark is a record without a response. It counts for requests with the same values of the fields that always count.
func (l *lookup) mark(k kind, until time.Duration) (*record, time.Duration) {
	return &record{
		kind: k, id: rand.Text(), page: l.page, received: time.Now(), until: until, vary: selection(l.r, nil),
	}, until
}

// record is that of a response that may be stored.
func (out *run) record() *record {
	h := out.w.sent
	rec := &record{
		kind: stored, id: rand.Text(), page: out.page, route: out.route, status: out.w.status,
		received: out.received, terms: out.terms, body: out.w.body,
		vary: selection(out.r, varyFields(h)),
	}
	if h.Get("Date") == "" {
		h.Set("Date", out.received.UTC().Format(http.TimeFormat))
	}
	if _, typed := h["Content-Type"]; !typed && len(rec.body) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(rec.body))
	}
	skip, trailer := unstorable(h, out.terms.without), trailers(h)
	rec.header = pairs(h, func(name string) bool { return skip(name) || trailer(name) })
	rec.trailer = pairs(out.w.header, func(name string) bool { return !trailer(name) })
	for i, p := range rec.trailer {
		rec.trailer[i].name = strings.TrimPrefix(p.name, http.TrailerPrefix)
	}
	rec.keepID(out.lookup.old)
	return rec
}

// keepID keeps the id of the record that is replaced, by which its variants know it, when they are still told apart by the
// same fields.
func (e *record) keepID(old *record) {
	if old != nil && old.kind == stored && slices.Equal(old.fields(), e.fields()) {
		e.id = old.id
	}
}

// merged is the stale record made good by a 304 (RFC 9111 section 3.2). What the body was encoded or cut with stays.
func (out *run) merged() *record {
	h := out.old.headerOf()
	skip := unstorable(out.w.sent, out.terms.without)
	for name, values := range out.w.sent {
		if !skip(name) && name != "Content-Encoding" && name != "Content-Range" {
			h[name] = values
		}
	}
	if out.w.sent.Get("Date") == "" {
		h.Set("Date", out.received.UTC().Format(http.TimeFormat))
	}
	if out.w.sent.Get("Age") == "" {
		h.Del("Age")
	}
	rec := *out.old
	rec.received, rec.page, rec.standsIn = out.received, out.page, false
	rec.terms = out.cfg.judge(out.r, reply{status: rec.status, header: h, sent: out.sent, received: out.received})
	rec.header = pairs(h, unstorable(h, rec.terms.without))
	rec.vary = selection(out.r, varyFields(h))
	rec.keepID(out.old)
	return &rec
}

package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// load has the handler make the response, and returns the record of it.
func (l *lookup) load(ctx context.Context, old *[]byte) ([]byte, error) {
	if l.told != nil {
		return l.renewMark(ctx, old)
	}
	if old == nil {
		l.old = nil // what judge saw has been invalidated meanwhile
	}
	before, known := l.versionsBefore(ctx)
	out := newRun(l)
	seated := !l.background && !l.anew.unanswered() && l.seat.take(out)
	if out.unheard = !seated || l.part(); out.unheard {
		out.w.out = nil
	}
	if seated {
		go out.serve(l.request(out.outlive(ctx), l.part())) // owner: the request; stop: its context; joined by seat.leave
		select {
		case <-out.w.committed:
		case <-out.done:
		case <-ctx.Done():
		}
	} else {
		out.serve(l.request(out.outlive(ctx), true))
	}
	if ctx.Err() != nil { // handlers that were told to stop return as if they were done
		return nil, fmt.Errorf("middleware: %w: %w", ctx.Err(), context.Cause(ctx))
	}
	rec, keep := out.result()
	if rec.IsResponse() && (!known || !l.versionsAfter(ctx, before, rec)) {
		keep = 0
	}
	out.kept.Store(rec.IsResponse() && keep > 0)
	cacheguard.SetTTL(ctx, keep)
	return rec.Encode(), nil
}

// errUnheard is why the context of a handler ends whose response is for nobody.
var errUnheard = errors.New("middleware: the response cannot be stored, and is for nobody")

// outlive is the handler's context. It ends with the load's, until the response is on its way to its client: the load is over
// then, and the context ends with the client's; or at once, where there is no client for it.
func (out *run) outlive(load context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(load))
	follow := func(leader context.Context) (stop func() bool) {
		return context.AfterFunc(leader, func() { cancel(context.Cause(leader)) })
	}
	stop, ended := follow(load), false
	out.w.leaves = func() bool {
		if !stop() {
			ended = true // the load was, and what comes is not whole
			return false
		}
		if out.unheard {
			cancel(errUnheard)
			return false
		}
		stop = follow(out.l.x.r.Context())
		return true
	}
	out.end = func() bool {
		interrupted := ended || ctx.Err() != nil && !out.w.open
		stop()
		cancel(nil)
		out.w.leaves = func() bool { return !out.unheard } // what is sent after the end needs no context
		return interrupted
	}
	return ctx
}

// request is what the handler is asked for. It is the whole page, whatever the client has of it already; with a stale record
// at hand, it is whether that is still good. Alone: the client has been answered, and what it brought may be in use again.
func (l *lookup) request(ctx context.Context, alone bool) *http.Request {
	if alone && l.route != nil {
		ctx = context.WithValue(ctx, chi.RouteCtxKey, l.route.Clone())
	}
	r := l.x.r.WithContext(ctx)
	r.Method = http.MethodGet
	r.Header = l.x.r.Header.Clone()
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"} {
		r.Header.Del(name)
	}
	if len(r.Header["Upgrade"]) > 0 { // in vain: the response is for others too
		r.Header.Del("Upgrade")
		r.Header.Del("Http2-Settings")
	}
	r.Header.Del("Connection") // it may name a field that is set here or for a slice, and a proxy behind would drop that
	if alone {
		r.Body = http.NoBody
	}
	if old := l.usable(); old != nil {
		setIf(r.Header, "If-None-Match", old.Get("Etag"))
		setIf(r.Header, "If-Modified-Since", old.Get("Last-Modified"))
	}
	return r
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// renewMark keeps a mark whose time is up, if the request that found it so got a response that may not be stored either.
func (l *lookup) renewMark(ctx context.Context, old *[]byte) ([]byte, error) {
	var holds bool
	select {
	case holds = <-l.told: // closed: it does not tell
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	same, keep := *l.old, time.Duration(0)
	if holds && old != nil {
		same.Received, keep = time.Now(), 2*same.Until
	}
	cacheguard.SetTTL(ctx, keep)
	return same.Encode(), nil
}

// tell says whether a response that went past the cache may be stored, as far as it shows. A part shows how large the page is.
func (l *lookup) tell(status int, h http.Header, began time.Time) {
	cfg, h := &l.x.cache.cfg, canonical(h)
	holds := declared(status, h) > int64(cfg.MaxBody)
	switch {
	case status >= 400, status == http.StatusNotModified, status == http.StatusPartialContent && !holds:
		return
	case !holds:
		reply := rules.Reply{Status: status, Header: h, Sent: began, Received: time.Now()}
		holds = cfg.rules.Assess(l.x.r, reply).Unfit != ""
	case cfg.SliceBytes > 0 && l.old.Get(whyField) != noRanges:
		holds = !l.sliceable(h, began)
	}
	select {
	case l.told <- holds:
	default: // it was told
	}
}

// declared is how large the page is that a response is, or is a part of, as that says itself; 0: it does not.
func declared(status int, h http.Header) int64 {
	length := h.Get("Content-Length")
	if status == http.StatusPartialContent {
		_, length, _ = strings.Cut(h.Get("Content-Range"), "/")
	}
	size, err := strconv.ParseInt(length, 10, 64)
	if err != nil {
		return 0
	}
	return size
}

package middleware

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/sliced"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// recorder returns a Recorder of the handler's response, for its client or, if it is unheard, for nobody.
func (b *build) recorder() *writer.Recorder {
	x, client, to := b.lookup.x, b.lookup.client, http.ResponseWriter(nil)
	if !b.unheard {
		to = client.w
	}
	w := writer.NewRecorder(to, x.r, x.front, x.cache.cfg.MaxBody)
	w.Decide, w.Hidden = b.decide, x.cache.hidden
	w.Before = func(status int) {
		client.setStatus(cachestatus.Forward{Why: b.lookup.why, Status: status, Detail: b.lookup.detail(w.Unfit)})
	}
	return w
}

// handle calls the handler, and makes the record of its response. It leaves a panic to the request that joins the build.
func (b *build) handle(r *http.Request) {
	defer close(b.done)
	returned := false
	defer func() {
		if p := recover(); !returned {
			b.recovered(r, p)
		}
		b.interrupted = b.end() && !b.isWhole()
		b.rec, b.keep = b.outcome()
	}()
	b.call(r)
	if b.confirmed && !b.renew() {
		// The request goes through the router again, which must start from the beginning.
		r = b.lookup.backgroundRequest(r.Context())
		rules.DropConditions(r.Header)
		b.confirmed, b.validate = false, nil
		b.w.Reset()
		b.call(r)
	}
	returned = true
}

func (b *build) call(r *http.Request) {
	b.began, b.asked = b.lookup.x.now(), r
	defer func() { b.route = route(r) }() // also of a handler that panics
	b.lookup.x.next.ServeHTTP(b.w, r)
	b.w.Finish()
}

func (b *build) recovered(r *http.Request, panicked any) {
	if err, ok := panicked.(error); panicked == nil || ok && errors.Is(err, http.ErrAbortHandler) {
		b.panicked = http.ErrAbortHandler // recoverers compare it; nil: the handler ended its goroutine
		return
	}
	stack := debug.Stack()
	b.panicked = &PanicError{Value: panicked, Stack: stack}
	b.lookup.x.cache.logPanic(r.Context(), r.URL.Path, panicked, stack)
}

// decide reports whether the response is held back to be stored. It is called once its header is known.
func (b *build) decide(status int, h http.Header) writer.Decision {
	l, cache, method := b.lookup, b.lookup.x.cache, b.lookup.x.r.Method
	cache.rules.Correct(l.x.r, h)
	b.received = l.x.now()
	b.confirmed = status == http.StatusNotModified && b.validate != nil
	b.standsIn = rules.IsFailure(status) && l.x.mayStandIn(l.standIn, b.received)
	if b.confirmed || b.standsIn {
		return writer.Decision{Explicit: true, Discard: true}
	}
	b.assessed = l.x.assess(status, h, b.began, b.received)
	unfit := b.assessed.Unfit
	switch {
	case unfit != "":
	case !record.Fits(h):
		unfit = writer.TooLarge
	case !b.fitsSearch(h):
		unfit = otherSearch
	case rules.DeclaredSize(status, h) > int64(cache.cfg.MaxBody):
		unfit = b.tooLarge(status, h)
	case method == http.MethodHead && (status != http.StatusOK || !b.assessed.Explicit):
		unfit = wrongMethod // a router in front may have chosen this handler for HEAD, and refuse other requests with it
	default:
		unfit, b.refused = b.limited(status)
	}
	return writer.Decision{Unfit: unfit, Explicit: b.assessed.Explicit}
}

// tooLarge handles a response that is larger than MaxBody, once its header is known: if the page can be sliced, the header alone is
// stored. It returns why the response is not stored whole.
func (b *build) tooLarge(status int, h http.Header) (unfit string) {
	l := b.lookup
	switch {
	case l.x.cache.cfg.SliceBytes == 0:
		return writer.TooLarge
	case l.reload.unsliceable:
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

// outlive is the handler's context. It ends with the load. When the response is released to the client, the load is over, and the context
// ends with the client's from then on; if no client is there, it ends at once.
func (b *build) outlive(load context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(load))
	follow := func(leader context.Context) (stop func() bool) {
		return context.AfterFunc(leader, func() { cancel(context.Cause(leader)) })
	}
	stop, ended := follow(load), false
	b.w.Leaving = func() bool {
		if !stop() {
			ended = true // the load has ended, so what comes is not whole
			return false
		}
		if b.unheard {
			cancel(writer.ErrUnheard)
			return false
		}
		stop = follow(b.lookup.x.r.Context())
		return true
	}
	b.end = func() bool {
		interrupted := ended || ctx.Err() != nil && !b.w.IsReleased()
		stop()
		cancel(nil)
		b.w.Leaving = func() bool { return !b.unheard } // what is sent after the end needs no context
		return interrupted
	}
	return ctx
}

package middleware

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// lookup asks the Guard for the record of a page or of a variant. A load of it may outlive the request.
type lookup struct {
	x       *request
	variant variant
	key     string
	past    cacheguard.Past
	why     string       // why the handler is asked, as Cache-Status says it
	routing *chi.Context // a copy: chi reuses its own as soon as the request is answered
	reload  reload       // of the exchange, when the lookup began

	client *exchange             // that asks, and gets what a build makes that cannot be stored, while it is there
	build  atomic.Pointer[build] // that the client waits for

	// Set by evaluate, in the request's goroutine.
	seen     *record.Record // the record that was decoded last
	seenMine bool           // the request selects it
	seenAt   time.Time      // when that was; zero: its age did not matter

	// Set by evaluate too, before it causes a load.
	previous   *record.Record // the record that is to be replaced
	revoked    bool           // previous was invalidated: nothing of it may be served again
	standIn    *record.Record // previous, if this request may have it, which began when it was valid: loads are for others, too
	background bool           // the request is answered with previous in the meantime
	markHolds  chan bool      // previous is a mark whose time is up: see mark.go
}

// variant is one of the variants of a page, or the page itself.
type variant struct {
	of     *record.Record // the page's own record; nil: it is the page itself
	fields []string       // that tell its variants apart
	values []record.Pair  // of the fields, in the request
}

// page is the ID of the page that it is one of the variants of.
func (v *variant) page() string {
	if v.of == nil {
		return ""
	}
	return v.of.ID
}

// usable is the record that is to be replaced, if any of it may still be used.
func (l *lookup) usable() *record.Record {
	if l.previous == nil || l.revoked || !l.previous.IsResponse() || l.reload.unsliceable {
		return nil
	}
	return l.previous
}

// switchedOff is why a response is not stored then, whatever else is in the way.
const switchedOff = "bypass"

// detail is why a response is not stored, of a read with that reason.
func (l *lookup) detail(reason string) string {
	if l.past.IsWanted() {
		return switchedOff
	}
	return reason
}

// wantsPart reports whether the request wants a range, or the header alone. The page is loaded whole then.
func (l *lookup) wantsPart() bool {
	return l.x.r.Method == http.MethodHead || len(l.x.r.Header["Range"]) > 0
}

// reload says that a page must be loaded again, because its handler no longer has the slices of the record that was found. Zero: it need
// not be.
type reload struct {
	parts       string // of the page that was found
	unsliceable bool   // the page cannot be sliced, whatever it says
	late        bool   // the client has had a part of the page already: what is loaded is not for this request
}

// replaces reports whether a record is the one to be replaced. Another request may have done that already.
func (a reload) replaces(rec *record.Record) bool {
	return rec.Kind == record.Sliced && rec.Parts == a.parts
}

// request makes the request for the handler: for the whole page, even if the client has or wants only a part, or for a confirmation of
// the previous one.
func (l *lookup) request(ctx context.Context) *http.Request {
	r := l.x.r.Clone(ctx) // handlers change its URL, form and path values in place, and may run twice, or beside those in front
	r.Header = l.x.cache.names.Header(r.Header)
	canonical.Settle(r)
	rules.DropConditions(r.Header)
	if len(r.Header["Upgrade"]) > 0 { // to no avail: the response is for others too
		r.Header.Del("Upgrade")
		r.Header.Del("Http2-Settings")
	}
	r.Header.Del("Connection") // a proxy behind would drop the fields it names, perhaps one that is set here
	if previous := l.usable(); previous != nil {
		for condition, validator := range map[string]string{"If-None-Match": "Etag", "If-Modified-Since": "Last-Modified"} {
			if value := previous.Get(validator); value != "" {
				r.Header.Set(condition, value)
			}
		}
	}
	return r
}

// backgroundRequest is request for a handler that may run after the client has been answered, when the server and the router may have
// reused what came with its request.
func (l *lookup) backgroundRequest(ctx context.Context) *http.Request {
	if l.routing != nil {
		ctx = context.WithValue(ctx, chi.RouteCtxKey, l.routing.Clone())
	}
	return l.request(ctx)
}

// load lets the handler make the response, and returns its record. The Guard calls it, once for all
// instances.
func (l *lookup) load(ctx context.Context, old *[]byte) ([]byte, error) {
	switch {
	case old == nil && l.markHolds == nil:
		l.previous = nil // the record that evaluate saw has been invalidated since
	case old != nil && l.markHolds != nil:
		return l.renewMark(ctx)
	}
	b := &build{lookup: l, validate: l.usable(), done: make(chan struct{})}
	l.run(ctx, b, l.background && old != nil) // what evaluate saw may have been in the local tier alone: then the request waits
	if ctx.Err() != nil {                     // a handler that is told to stop returns as if it were done
		return nil, fmt.Errorf("middleware: %w: %w", ctx.Err(), context.Cause(ctx))
	}
	rec, keep := b.result()
	if b.stored.Store(rec.IsResponse() && keep > 0); b.stored.Load() {
		l.holds(ctx, keep)
	}
	if l.variant.of == nil && rec.Variants > 0 {
		keep = max(keep, l.x.left(rec))
	}
	return l.x.cache.stores(ctx, rec, keep), nil
}

// run runs the handler, with the request as its outlet if that is there and waits, or without a client. It returns when the handler is done, or
// when its response turns out not to be storable: the Guard shows what runs on when ctx has ended.
func (l *lookup) run(ctx context.Context, b *build, background bool) {
	heard := !background && !l.reload.late && l.take(b)
	b.unheard = !heard || l.wantsPart()
	b.w = b.recorder()
	handlerCtx := b.outlive(ctx)
	if !heard {
		b.handle(l.backgroundRequest(handlerCtx))
		return
	}
	r := l.request(handlerCtx)
	if l.wantsPart() {
		r = l.backgroundRequest(handlerCtx)
	}
	go b.handle(r) // owner: the request; stop: its context; joined by leave
	select {
	case <-b.w.Released():
	case <-b.done:
	}
}

// gone is the build of lookups whose requests wait for none any more.
var gone = new(build)

// take makes the request wait for the build. It reports whether the request is still there and waits for no other.
func (l *lookup) take(b *build) bool { return l.build.CompareAndSwap(nil, b) }

// leave waits for the end of the build and returns it; nil if there was none. After that, none can begin.
func (l *lookup) leave() *build {
	b := l.build.Swap(gone)
	if b != nil {
		<-b.done
	}
	return b
}

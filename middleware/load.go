package middleware

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// load lets the handler make the response, and returns its record. The Guard calls it, once for all
// instances.
func (l *lookup) load(ctx context.Context, old *[]byte) ([]byte, error) {
	if l.markHolds != nil {
		return l.renewMark(ctx, old)
	}
	if old == nil {
		l.previous = nil // the record that evaluate saw has been invalidated since
	}
	b := &build{lookup: l, validate: l.usable(), done: make(chan struct{})}
	b.run(ctx)
	if ctx.Err() != nil { // a handler that is told to stop returns as if it were done
		return nil, fmt.Errorf("middleware: %w: %w", ctx.Err(), context.Cause(ctx))
	}
	rec, keep := b.result()
	if b.stored.Store(rec.IsResponse() && keep > 0); b.stored.Load() {
		l.holds(ctx, keep)
	}
	if l.variant.page == "" && rec.Variants > 0 {
		keep = max(keep, l.x.left(rec))
	}
	if rec.IsResponse() {
		cacheguard.SetTags(ctx, l.x.cache.tagsOf(rec.Location, writer.Final(l.x.front, rec, rec.HTTPHeader()))...)
	}
	cacheguard.SetTTL(ctx, keep)
	return rec.Encode(), nil
}

// run runs the handler, with the request as its outlet if that is there, or without a client. It returns when the handler is done, when its
// response turns out not to be storable, or when ctx ends.
func (b *build) run(ctx context.Context) {
	l := b.lookup
	heard := !l.background && !l.reload.isLate() && l.outlet.take(b)
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
	go b.handle(r) // owner: the request; stop: its context; joined by outlet.leave
	select {
	case <-b.w.Released():
	case <-b.done:
	case <-ctx.Done():
	}
}

// request makes the request for the handler: for the whole page, even if the client has or wants only a part, or for a confirmation of
// the previous one.
func (l *lookup) request(ctx context.Context) *http.Request {
	r := l.x.r.Clone(ctx) // handlers change its URL, form and path values in place, and may run twice, or beside those in front
	r.Header = l.x.cache.names.Header(r.Header)
	r.Method, r.Close = http.MethodGet, false
	canonical.Form(r)
	rules.DropConditions(r.Header)
	for _, name := range []string{"If-Range", "Range"} {
		r.Header.Del(name)
	}
	if len(r.Header["Upgrade"]) > 0 { // to no avail: the response is for others too
		r.Header.Del("Upgrade")
		r.Header.Del("Http2-Settings")
	}
	r.Header.Del("Connection") // a proxy behind would drop the fields it names, perhaps one that is set here
	if previous := l.usable(); previous != nil {
		setIf(r.Header, "If-None-Match", previous.Get("Etag"))
		setIf(r.Header, "If-Modified-Since", previous.Get("Last-Modified"))
	}
	return r
}

// backgroundRequest is request for a handler that may run after the client has been answered, when the server and the router may have
// reused what came with its request.
func (l *lookup) backgroundRequest(ctx context.Context) *http.Request {
	if l.routing != nil {
		ctx = context.WithValue(ctx, chi.RouteCtxKey, l.routing.Clone())
	}
	r := l.request(ctx)
	r.Body = http.NoBody
	return r
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

package middleware

import (
	"context"
	"fmt"
)

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
	if l.variant.page == "" && rec.Variants > 0 {
		keep = max(keep, l.x.left(rec))
	}
	return l.x.cache.stores(ctx, rec, keep), nil
}

// run runs the handler, with the request as its outlet if that is there and waits, or without a client. It returns when the handler is done, when its
// response turns out not to be storable, or when ctx ends.
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
	case <-ctx.Done():
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

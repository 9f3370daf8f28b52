package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

// pages are of a handler behind package middleware, in two variants. Half of them are invalidated softly: that may undo an invalidation of the
// page beside it, so these are invalidated in earnest by their tags alone.
const pages = 8

func pageKey(id int) string { return fmt.Sprint("page:", id) }

func isSoft(id int) bool { return id >= pages/2 }

func askFor(ctx context.Context, id int) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprint("/page/", id), http.NoBody)
	r.Header.Set("X-Variant", strconv.Itoa(rand.N(2)))
	return r
}

// newPages is the Cache in front of the pages. They expire soon, and stand in for a handler that fails: so they are stored again without it.
func (w *worker) newPages(guard *cacheguard.Guard) (*middleware.Cache, error) {
	return middleware.New(guard, middleware.Config{StaleWhile: time.Minute})
}

// ServeHTTP makes a page of a row, with the tags of that.
func (w *worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	v, err := w.loadRow(r.Context())
	if err != nil || rand.N(8) == 0 {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	h := rw.Header()
	h.Set("Vary", "X-Variant")
	h.Set("Cache-Control", fmt.Sprint("max-age=", rand.N(3)))
	h.Set("X-N", strconv.FormatInt(v.N, 10))
	h.Set("X-Tags", strconv.FormatUint(uint64(v.Tags), 10))
}

func (w *worker) getPage(ctx context.Context, o *opened) error {
	ctx, cancel := impatient(ctx)
	defer cancel()
	ctx, all := withOutcomes(ctx)
	id, from, a := rand.N(pages), now(), httptest.NewRecorder()
	o.pages.Handler(w).ServeHTTP(a, askFor(ctx, id))
	closed := o != w.opened.Load() // as ErrClosed of a Get
	if a.Code == http.StatusServiceUnavailable || a.Code == http.StatusGatewayTimeout && closed || ctx.Err() != nil {
		return ctx.Err()
	}
	n, errN := strconv.ParseInt(a.Header().Get("X-N"), 10, 64)
	bits, errTags := strconv.ParseUint(a.Header().Get("X-Tags"), 10, 0)
	if a.Code != http.StatusOK || errN != nil || errTags != nil {
		return w.failed(ctx, o, pageKey(id), from, fmt.Errorf("answered %d %v", a.Code, a.Header()))
	}
	w.notes(o, pageKey(id), value{N: n, Tags: uint(bits), By: "page"}, all.oldest(), from)
	return nil
}

// oldest is how the oldest of all that a page takes may have been found.
func (o *outcomes) oldest() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := make(map[cacheguard.Outcome]bool)
	for _, how := range o.all {
		found[how] = true
	}
	for _, how := range []cacheguard.Outcome{cacheguard.Local, cacheguard.Stale, cacheguard.Hit} {
		if found[how] {
			return string(how)
		}
	}
	return string(cacheguard.Loaded)
}

// invalidatePage writes, and invalidates a page. A soft invalidation promises nothing of what is served.
func (w *worker) invalidatePage(ctx context.Context, o *opened) error {
	id := rand.N(pages)
	if isSoft(id) {
		return o.pages.Invalidate(middleware.Soft(ctx), askFor(ctx, id))
	}
	return w.change(ctx, o, []string{"key:" + pageKey(id)}, func() error { return o.pages.Invalidate(ctx, askFor(ctx, id)) })
}

package middleware

import (
	"context"
	"net/http"

	"github.com/cacheguard/go/middleware/internal/rules"
)

// PurgeHandler invalidates over HTTP: PURGE of a URL its page with all variants, as Invalidate does; PURGE with Cache-Tag or
// Surrogate-Key the pages with these tags instead. A field Soft, as in Soft: 1, makes the invalidation of a page a soft one. It answers 204
// when no instance serves them any more (a local tier does until a message has reached it), 400 to a tag that no response can have and to
// tags with Soft, 403 to requests that allow refuses, 405 to other methods, and 502 when Redis does not answer: then instances may go on
// serving them, until the Guard has sent the invalidation again.
//
// Put it in front of the Cache, where clients' URLs arrive unchanged. Allow decides who may purge, by a token or an address; nil: nobody.
func (c *Cache) PurgeHandler(allow func(r *http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != "PURGE":
			w.Header().Set("Allow", "PURGE")
			w.WriteHeader(http.StatusMethodNotAllowed)
		case allow == nil || !allow(r):
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(c.purge(r))
		}
	})
}

// purge does so, and returns the status.
func (c *Cache) purge(r *http.Request) int {
	named, softly := len(r.Header["Cache-Tag"])+len(r.Header["Surrogate-Key"]) > 0, len(r.Header["Soft"]) > 0 || isSoft(r.Context())
	tags := rules.Tags(r.Header)
	if named && (len(tags) == 0 || softly || checkTags(tags) != nil) {
		return http.StatusBadRequest
	}
	purge := c.Invalidate
	if named {
		purge = func(ctx context.Context, _ *http.Request) error { return c.InvalidateTags(ctx, tags...) }
	}
	ctx := context.WithoutCancel(r.Context())
	if softly {
		ctx = Soft(ctx)
	}
	if purge(ctx, r) != nil {
		return http.StatusBadGateway
	}
	return http.StatusNoContent
}

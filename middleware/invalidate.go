package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// Invalidate removes the page that the request asks for, with all its variants, on every instance. A request that begins after Invalidate
// returned nil is not answered with a response that was made before. A response that is being made during the Invalidate is not stored.
//
// Only the Host, path and query of the request count. Pass a received request, or one made with the page's URL as clients know it. A
// request without a host, such as http.NewRequest makes from a mere path, is an error.
//
// Like Guard.Invalidate, it is sent even if ctx has ended. An error means that other instances may go on serving the page.
func (c *Cache) Invalidate(ctx context.Context, r *http.Request) error {
	if r == nil || r.URL == nil || r.Host == "" && r.URL.Host == "" {
		return errors.New("middleware: the request to invalidate names no host")
	}
	keys := c.names.AllKeys(r)
	if c.cfg.StaleWhile > 0 && isSoft(ctx) {
		return c.soften(ctx, r, keys)
	}
	return c.guard.Invalidate(ctx, keys...)
}

// InvalidatePrefix is Invalidate for all pages, of all hosts, whose path begins with the prefix, which must be one of Config.Prefixes. Its
// cost does not depend on the number of pages. With a context of Soft it invalidates nothing, and returns an error.
func (c *Cache) InvalidatePrefix(ctx context.Context, prefix string) error {
	if !slices.Contains(c.cfg.Prefixes, prefix) {
		return fmt.Errorf("middleware: %q is none of Config.Prefixes", prefix)
	}
	if isSoft(ctx) {
		return errNotSoft
	}
	return c.guard.InvalidateTags(ctx, c.names.Key(prefixName, prefix))
}

// InvalidateTags is Invalidate for all pages whose response has one of the tags in Cache-Tag or Surrogate-Key. Its cost does not depend on
// the number of pages. Tags are compared as they are. A tag that no response can have is an error: an empty string, or several tags in one
// string. The other tags are invalidated all the same. With a context of Soft it invalidates nothing, and returns an error.
func (c *Cache) InvalidateTags(ctx context.Context, tags ...string) error {
	switch {
	case len(tags) == 0:
		return nil
	case isSoft(ctx):
		return errNotSoft
	}
	return errors.Join(checkTags(tags), c.guard.InvalidateTags(ctx, c.namesOf(tagName, "", tags)...))
}

// invalidates reports whether a successful request with that method invalidates its page.
func (c *Cache) invalidates(method string) bool {
	return c.cfg.InvalidatingMethods == nil || slices.Contains(c.cfg.InvalidatingMethods, method)
}

// invalidateAfter invalidates what a successful unsafe request may have changed (RFC 9111 section 4.4): the page with these keys, which is
// the page of the request; the pages of the same origin that Location and Content-Location name, relative to base; and those of the groups
// that the response names (RFC 9875). The Guard retries what it cannot send.
func (c *Cache) invalidateAfter(ctx context.Context, base url.URL, keys []string, h http.Header) error {
	for _, name := range []string{"Location", "Content-Location"} {
		u, err := url.Parse(h.Get(name))
		if h.Get(name) == "" || err != nil {
			continue
		}
		target := base.ResolveReference(u)
		if strings.EqualFold(target.Scheme, base.Scheme) && strings.EqualFold(target.Host, base.Host) {
			keys = append(keys, c.names.Keys(&http.Request{URL: target})...)
		}
	}
	var unsent error
	if groups := rules.Groups(h[rules.CacheGroupInvalidation]); len(groups) > 0 {
		unsent = c.guard.InvalidateTags(ctx, c.namesOf(groupName, base.Scheme+"://"+base.Host+canonical.Separator, groups)...)
	}
	return errors.Join(unsent, c.guard.Invalidate(ctx, keys...))
}

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

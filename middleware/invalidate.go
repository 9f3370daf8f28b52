package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// Invalidate removes the page that the request asks for, in all its variants, on every instance. A response that is being
// made while it is called is not stored. Only the URL and the Host of the request count. A request that begins after
// Invalidate returned nil is not answered with what was made before.
//
// Like Guard.Invalidate, it is sent even when ctx has ended; an error means that other instances may go on serving the page.
func (c *Cache) Invalidate(ctx context.Context, r *http.Request) error {
	return c.guard.Invalidate(ctx, c.keys(r)...)
}

// keys are those under which the page that a request asks for may be stored.
func (c *Cache) keys(r *http.Request) (keys []string) {
	for _, connection := range []string{"http", "https"} {
		location := c.cfg.locationOver(connection, r)
		keys = append(keys, pageKey(anybody, location), pageKey(somefew, location))
	}
	return keys
}

// InvalidatePrefix is Invalidate for all pages, of all hosts, whose path begins with the prefix. That must be one of
// Config.Prefixes. It costs the same however many pages there are.
func (c *Cache) InvalidatePrefix(ctx context.Context, prefix string) error {
	if !slices.Contains(c.cfg.Prefixes, prefix) {
		return fmt.Errorf("middleware: %q is none of Config.Prefixes", prefix)
	}
	return c.guard.Invalidate(ctx, pathPrefix+prefix)
}

// InvalidateTags is Invalidate for all pages whose response has one of the tags in Cache-Tag or Surrogate-Key. It costs the
// same however many pages there are.
func (c *Cache) InvalidateTags(ctx context.Context, tags ...string) error {
	if len(tags) == 0 {
		return nil
	}
	first := c.guard.Invalidate(ctx, anyTag) // before the tags: see anyTag
	return errors.Join(first, c.guard.Invalidate(ctx, tagKeys(tags)...))
}

// invalidateAfter invalidates what a successful unsafe request may have changed (RFC 9111 section 4.4): its own page, and
// those that Location and Content-Location name, of the same origin. What cannot be sent, the Guard owes and reports.
func (x *exchange) invalidateAfter(h http.Header) {
	keys := x.keys(x.r)
	base := *x.r.URL
	base.Scheme, base.Host = site(x.r)
	for _, name := range []string{"Location", "Content-Location"} {
		u, err := url.Parse(h.Get(name))
		if h.Get(name) == "" || err != nil {
			continue
		}
		target := &http.Request{URL: base.ResolveReference(u)}
		if scheme, host := site(target); scheme == base.Scheme && host == base.Host {
			keys = append(keys, x.keys(target)...)
		}
	}
	_ = x.guard.Invalidate(x.r.Context(), keys...)
}

package middleware

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// Invalidate removes the page that the request asks for, with all its variants, on every instance. A request that begins after Invalidate
// returned nil is not answered with a response that was made before. A response that is being made during the Invalidate is not stored.
//
// Only the Host, path and query of the request count. Pass a received request, or one made with the page's URL as clients know it. A
// request without a host, such as http.NewRequest makes from a mere path, is an error, unless Key.Host is set.
//
// Like Guard.Invalidate, it is sent even if ctx has ended. An error means that other instances may go on serving the page.
func (c *Cache) Invalidate(ctx context.Context, r *http.Request) error {
	if r == nil || r.URL == nil || r.Host == "" && r.URL.Host == "" && c.cfg.Key.Host == "" {
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
	path := unescapedPath(prefix)
	if !slices.Contains(c.prefixes, path) {
		return fmt.Errorf("middleware: %q is none of Config.Prefixes", prefix)
	}
	if isSoft(ctx) {
		return errNotSoft
	}
	return c.guard.InvalidateTags(ctx, c.names.Key(prefixName, path))
}

// InvalidateTags is Invalidate for all pages whose response has one of the tags in Cache-Tag or Surrogate-Key. Its cost does not depend on
// the number of pages. A tag that a loader sets by cacheguard.SetTags, of the same text, is
// another name, for Guard.InvalidateTags, which knows this one as tag:TEXT. Tags are compared as they are. A tag that no response can have is an error: an empty string, or several tags in one
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

// invalidateAfter invalidates what a successful unsafe request may have changed (RFC 9111 section 4.4): the page that it asked for; the pages of
// the same origin that Location and Content-Location name; and those of the groups that the response names (RFC 9875). The Guard retries what
// it cannot send.
func (c *Cache) invalidateAfter(ctx context.Context, asked canonical.Asked, h http.Header) error {
	keys := asked.Keys
	for _, name := range []string{"Location", "Content-Location"} {
		keys = append(keys, c.names.KeysOf(&asked, h.Get(name))...)
	}
	var unsent error
	if groups := rules.Groups(h[rules.CacheGroupInvalidation]); len(groups) > 0 {
		unsent = c.guard.InvalidateTags(ctx, c.namesOf(groupName, asked.Site+canonical.Separator, groups)...)
	}
	return errors.Join(unsent, c.guard.Invalidate(ctx, keys...))
}

// PurgeHandler invalidates over HTTP: PURGE of a URL its page with all variants, as Invalidate does; PURGE with Cache-Tag or
// Surrogate-Key the pages with these tags instead. A field Soft, as in Soft: 1, makes the invalidation of a page a soft one. It answers 204
// when no instance serves them any more (a local tier does until a message has reached it), 400 to a tag that no response can have and to
// tags with Soft, 403 to requests that allow refuses, 405 to other methods, and 502 when Redis does not answer: then instances may go on
// serving them, until the Guard has sent the invalidation again. If Redis had no page of the URL, whose host may be wrong, its Cache-Status has
// detail=nothing-there; for tags that no page had, which may be mistyped, it has that and names them: key="hat,shoe".
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
			none := c.nothing(r) // before it is purged
			status := c.purge(r)
			if none != "" && status == http.StatusNoContent {
				w.Header().Set("Cache-Status", c.cfg.Name+none)
				writer.Hide(w.Header(), c.hidden)
			}
			w.WriteHeader(status)
		}
	})
}

// nothing says that Redis has no page of a purge's URL, and nobody makes one, or which of its tags no page has; empty: it has, or nobody knows.
func (c *Cache) nothing(r *http.Request) string {
	none := cachestatus.Detail("nothing-there")
	if namesTags(r) {
		tags := rules.Tags(r.Header)
		tags = slices.DeleteFunc(tags, func(tag string) bool {
			has, err := c.guard.HasTag(r.Context(), c.names.Key(tagName, tag))
			return has || err != nil
		})
		if len(tags) == 0 {
			return ""
		}
		return none + cachestatus.Key(strings.Join(tags, ","))
	}
	for _, key := range c.names.AllKeys(r) {
		i, err := c.guard.Inspect(r.Context(), key)
		if err != nil || i.State != cacheguard.EntryMissing || i.Load != nil || len(i.Versions) > 0 {
			return ""
		}
	}
	return none
}

func namesTags(r *http.Request) bool {
	return len(r.Header["Cache-Tag"])+len(r.Header["Surrogate-Key"]) > 0
}

// purge does so, and returns the status.
func (c *Cache) purge(r *http.Request) int {
	ctx := context.WithoutCancel(r.Context())
	if len(r.Header["Soft"]) > 0 {
		ctx = Soft(ctx)
	}
	var err error
	switch tags := rules.Tags(r.Header); {
	case !namesTags(r):
		err = c.Invalidate(ctx, r)
	case len(tags) == 0, isSoft(ctx), checkTags(tags) != nil:
		return http.StatusBadRequest
	default:
		err = c.InvalidateTags(ctx, tags...)
	}
	if err != nil {
		return http.StatusBadGateway
	}
	return http.StatusNoContent
}

// A soft invalidation is an invalidation after which the old page is stored again, as one that has just become stale. Its variants, also those
// that are being made, know it by the ID that it had before, and are as stale as it is.

// Soft makes an Invalidate with this context a soft one, as a field Soft does for PurgeHandler: for Config.StaleWhile, the
// page may still be served while one request has it rebuilt, or if the handler fails. Pages that may not be served stale are invalidated as
// always, and so are all if StaleWhile is 0. An Invalidate in earnest of the same page that returns while a soft one runs may be undone: the page
// is then served stale as if it had been invalidated softly alone. Tags, groups, prefixes and InvalidateAll are not undone.
//
// InvalidateTags and InvalidatePrefix refuse such a context, and invalidate nothing: they make pages invalid without knowing which, so nobody
// could say since when a page is stale, and whether another of its tags was invalidated in earnest.
func Soft(ctx context.Context) context.Context { return context.WithValue(ctx, soft{}, true) }

type soft struct{}

func isSoft(ctx context.Context) bool { return ctx.Value(soft{}) != nil }

var errNotSoft = errors.New("middleware: tags and prefixes cannot be invalidated softly, and were not")

// soften invalidates softly the page that a request asks for, which may have these keys.
func (c *Cache) soften(ctx context.Context, r *http.Request, keys []string) error {
	old, made := make(map[string]*record.Record), make(map[string]*cacheguard.Made)
	source := cacheguard.Source[[]byte]{SkipLocal: true, Unlimited: true, Part: true, Tags: c.prefixTags(r)}
	for _, key := range keys {
		made[key] = new(cacheguard.Made)
		source.Made = made[key]
		raw, _, err := cacheguard.Fetch(ctx, c.guard, key, source)
		if err != nil {
			continue // there is none, or Invalidate says why not
		}
		if rec, err := record.Decode(raw); err == nil && rec.IsResponse() {
			old[key] = rec
		}
	}
	if err := c.guard.Invalidate(ctx, keys...); err != nil {
		return err
	}
	for key, rec := range old {
		rec = c.softened(rec, c.clock.Now())
		if c.rules.Remaining(rec, c.clock.Now()) <= 0 {
			continue // it may not be stale
		}
		rec.Old, rec.ID = rec.ID, rand.Text()
		source.Made = made[key]
		source.Load = func(ctx context.Context, _ *[]byte) ([]byte, error) {
			return c.stores(ctx, rec, c.rules.Remaining(rec, c.clock.Now())), nil
		}
		_, _, _ = cacheguard.Fetch(ctx, c.guard, key, source) // if it fails, the invalidation was not soft
	}
	return nil
}

// softened is a record as one that became stale at some time.
func (c *Cache) softened(rec *record.Record, at time.Time) *record.Record {
	stale := *rec
	if left := rec.Fresh(at); left > 0 {
		stale.Terms.Lifetime, stale.Softened = rec.Terms.Lifetime-left, at.UnixMilli()
	}
	stale.Terms.SWR, stale.Terms.SIE = 0, 0
	if rec.Terms.MayBeStale() {
		left := max(0, c.cfg.StaleWhile+stale.Fresh(at))
		stale.Terms.SWR, stale.Terms.SIE = left, left
	}
	return &stale
}

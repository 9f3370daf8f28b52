package middleware

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/cache/pages"
	"github.com/cacheguard/go/middleware/internal/record"
)

// A soft invalidation is an invalidation after which the old page is stored again, as one that has just become stale. Its variants, also those
// that are being made, know it by the ID that it had before, and are as stale as it is.

// Soft makes an Invalidate with this context a soft one, as a field Soft does for PurgeHandler: for Config.StaleWhile, the
// page may still be served while one request has it rebuilt, or if the handler fails. Pages that may not be served stale are invalidated as
// always, and so are all if StaleWhile is 0.
//
// InvalidateTags and InvalidatePrefix refuse such a context, and invalidate nothing: they make pages invalid without knowing which, so nobody
// could say since when a page is stale, and whether another of its tags was invalidated in earnest.
func Soft(ctx context.Context) context.Context { return context.WithValue(ctx, soft{}, true) }

type soft struct{}

func isSoft(ctx context.Context) bool { return ctx.Value(soft{}) != nil }

var errNotSoft = errors.New("middleware: tags and prefixes cannot be invalidated softly, and were not")

// soften invalidates softly the page that a request asks for, which may have these keys.
func (c *Cache) soften(ctx context.Context, r *http.Request, keys []string) error {
	old := make(map[string]*record.Record)
	for _, key := range keys {
		raw, _, err := cacheguard.Fetch(&pages.Read{Context: ctx, Key: key}, c.guard, key, cacheguard.Source[[]byte]{SkipLocal: true})
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
		rec.Old, rec.ID = rec.ID, rand.Text()
		source := cacheguard.Source[[]byte]{Unlimited: true, Tags: c.prefixTags(r)}
		source.Load = func(ctx context.Context, _ *[]byte) ([]byte, error) {
			return c.stores(ctx, rec, c.rules.Remaining(rec, c.clock.Now())), nil
		}
		_, _, _ = cacheguard.Fetch(&pages.Read{Context: ctx, Key: key}, c.guard, key, source) // if it fails, the invalidation was not soft
	}
	return nil
}

// softened is a record as one that became stale at some time.
func (c *Cache) softened(rec *record.Record, at time.Time) *record.Record {
	stale := *rec
	if left := rec.Fresh(at); left > 0 {
		stale.Terms.Lifetime, stale.Softened = rec.Terms.Lifetime-left, at
	}
	stale.Terms.SWR, stale.Terms.SIE = 0, 0
	if t := rec.Terms; !t.Strict && !t.NoStale && !t.NoCache {
		left := max(0, c.cfg.StaleWhile+stale.Fresh(at))
		stale.Terms.SWR, stale.Terms.SIE = left, left
	}
	return &stale
}

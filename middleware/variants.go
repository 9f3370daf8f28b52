package middleware

import (
	"context"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
)

// The variant that was made first is the page's own record, and the others are valid only while that is there. So it is kept for as long as
// they are, even if nobody may be served with it any more: otherwise, all variants would end with the first.

// holds makes the page's own record last as long as a variant that is kept for that long. One that a tag has made invalid stays so.
func (l *lookup) holds(ctx context.Context, keep time.Duration) {
	x := l.x
	if l.variant.of == nil || keep <= 0 || x.left(l.variant.of) >= keep {
		return
	}
	ends := func(raw []byte) bool {
		rec, err := record.Decode(raw)
		return err == nil && rec.ID == l.variant.page() && rec.Location == x.location && x.left(rec) < keep
	}
	source := cacheguard.Source[[]byte]{Unlimited: true, Part: true, Tags: x.cache.prefixTags(x.r)}
	source.Judge = func(raw []byte) cacheguard.Verdict {
		if ends(raw) {
			return cacheguard.Refresh
		}
		return cacheguard.Serve
	}
	if raw, _, err := cacheguard.Fetch(ctx, x.cache.guard, x.key, source); err != nil || !ends(raw) {
		return
	}
	source.Load = func(ctx context.Context, old *[]byte) ([]byte, error) {
		cacheguard.SetTTL(ctx, 0)
		if old == nil {
			return nil, nil // it was invalidated
		}
		rec, err := record.Decode(*old)
		if err != nil {
			return nil, err
		}
		rec.Leftover = true                                           // those who join have to look at its age
		rec.Variants = record.Plus(x.now().Sub(rec.Received), 2*keep) // the next ones end a little later
		return x.cache.stores(ctx, rec, x.left(rec)), nil
	}
	_, _, _ = cacheguard.Fetch(ctx, x.cache.guard, x.key, source) // if it fails, the variants end with the page
}

package middleware

import (
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
)

// evaluate decides whether a stored record may answer the request.
func (l *lookup) evaluate(raw []byte) cacheguard.Verdict {
	l.markHolds, l.background, l.standIn = nil, false, nil // of a record that was read before, for example in the local tier
	rec, err := l.x.cache.decoded.Decode(l.key, raw)
	if err != nil || rec.Location != l.x.location {
		return cacheguard.Replace
	}
	l.seen, l.seenMine = rec, l.x.selects(rec)
	if l.variant.of == nil && !l.seenMine || rec.Kind == record.Moved {
		return cacheguard.Serve // it says where the variants are
	}
	if page := l.variant.of; page != nil && page.Old != "" && rec.Page == page.Old {
		rec = l.x.cache.softened(rec, time.UnixMilli(page.Softened))
		rec.Page, l.seen = page.ID, rec
	}
	l.previous = rec
	l.revoked = rec.Page != l.variant.page() || !l.seenMine
	l.standIn = l.usable()
	if l.revoked || l.reload.replaces(rec) {
		return cacheguard.Replace
	}
	l.seenAt = l.x.now()
	verdict := l.freshness(rec, l.seenAt)
	if rec.IsResponse() && verdict == cacheguard.Replace {
		l.why = "stale"
		if rec.Fresh(l.seenAt) > 0 {
			l.why = "request"
		}
	}
	l.background = verdict == cacheguard.Refresh
	if l.background && !rec.IsResponse() {
		l.markHolds = make(chan bool, 1)
	}
	return verdict
}

// leadsToVariants reports whether a record is only asked where the variants of its page are.
func (l *lookup) leadsToVariants(raw []byte) bool {
	rec, err := l.x.cache.decoded.Decode(l.key, raw)
	return err == nil && l.variant.of == nil && !l.x.selects(rec)
}

// freshness compares the age of a record with what its response and the request say (RFC 9111 sections 4.2 and 5.2, RFC 5861).
func (l *lookup) freshness(rec *record.Record, now time.Time) cacheguard.Verdict {
	if !rec.IsResponse() {
		return freshnessOfMark(rec, now)
	}
	age, ttl, want := rec.Age(now), rec.Fresh(now), &l.x.want
	switch {
	case rec.Terms.NoCache, want.NoCache, want.MaxAge.Given && age > want.MaxAge.Duration,
		want.MinFresh.Given && ttl < want.MinFresh.Duration:
		return cacheguard.Replace
	case ttl > 0:
		return cacheguard.Serve
	case rec.Terms.Strict, want.MaxAge.Given && !want.MaxStale.Given:
		return cacheguard.Replace
	case -ttl < rec.Terms.SWR:
		return cacheguard.Refresh
	case want.MaxStale.Given && -ttl <= want.MaxStale.Duration && !rec.Terms.NoStale:
		return cacheguard.Serve
	}
	return cacheguard.Replace
}

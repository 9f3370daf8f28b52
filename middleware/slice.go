package middleware

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
)

// slice is a part of a page that is kept in slices: a record of its own, loaded as a page is, once for all instances. It counts for
// the response that the page's record is of, and for no other: it names that by its Parts, which end with an invalidation of the page.
// So a slice has neither tags nor variants, and invalidating a page does not look for its slices.
type slice struct {
	l           *lookup // of the page
	head        *record.Record
	first, last int64 // of its bytes
}

// sliceAt is the slice that has a byte of the page.
func (l *lookup) sliceAt(head *record.Record, at int64) *slice {
	size := int64(l.x.cache.cfg.SliceBytes)
	first := at - at%size
	return &slice{l: l, head: head, first: first, last: first + min(size, head.Length-first) - 1}
}

func (s *slice) length() int { return int(s.last - s.first + 1) }

// key does not name the response, so that slices of a page that has changed take the place of the old ones.
func (s *slice) key() string {
	cfg := &s.l.x.cache.cfg
	return cfg.key("slice", strconv.FormatInt(s.first, 10)+"/"+strconv.Itoa(cfg.SliceBytes)+beyond+s.l.key)
}

// contentRange is what a response says that is this slice.
func (s *slice) contentRange() string {
	return fmt.Sprintf("bytes %d-%d/%d", s.first, s.last, s.head.Length)
}

// fetch gets the bytes of the slice, from the cache or the handler. The error is a refusal if the handler does not have it.
func (s *slice) fetch(ctx context.Context) (body []byte, how cacheguard.Outcome, err error) {
	cache := s.l.x.cache
	source := cacheguard.Source[[]byte]{Judge: s.judge, Load: s.load, Unlimited: !cache.cfg.LimitLoads}
	for tries := range maxTries { // a load may be joined that is for another response of this URL, or for a client that is refused
		raw, how, err := cacheguard.Fetch(ctx, cache.guard, s.key(), source)
		if err != nil {
			return nil, how, err
		}
		switch rec, err := record.Decode(raw); {
		case err != nil || rec.Page != s.head.Parts || rec.Location != s.head.Location:
		case rec.Kind == record.Passed && (how != cacheguard.Shared || tries == maxTries-1):
			return nil, how, refusal(rec.Get(whyField))
		case s.is(rec):
			return rec.Body, how, nil
		}
	}
	return nil, "", cacheguard.ErrNotCached
}

// is reports whether a record is this slice.
func (s *slice) is(rec *record.Record) bool {
	return rec.Kind == record.Stored && rec.Page == s.head.Parts && rec.Location == s.head.Location && len(rec.Body) == s.length() &&
		rec.Get("Content-Range") == s.contentRange()
}

// judge says whether what is stored may be used. The page has been judged before.
func (s *slice) judge(raw []byte) cacheguard.Verdict {
	rec, err := record.Decode(raw)
	now := time.Now()
	switch {
	case err != nil || !s.is(rec):
		return cacheguard.Replace
	case rec.Fresh(now) > 0:
		return cacheguard.Serve
	case s.vouched(rec, now) && s.head.Fresh(now) > 0:
		return cacheguard.Refresh // or it would end with the time that it had itself
	case s.vouched(rec, now), rec.Fresh(now) >= s.head.Fresh(now): // as stale as the page may be served
		return cacheguard.Serve
	}
	return cacheguard.Replace
}

// vouched reports whether the page's record is later than the slice: then it says of the slice too how long it is fresh, as it has
// the same strong validator (RFC 9111 section 4.3.4). So no slice is older than the page.
func (s *slice) vouched(rec *record.Record, now time.Time) bool {
	return s.head.Age(now) <= rec.Age(now)
}

// load has the handler make the slice; one that the page's record vouches for is stored once more, for as long as that is.
func (s *slice) load(ctx context.Context, old *[]byte) ([]byte, error) {
	if old != nil {
		if rec, err := record.Decode(*old); err == nil && s.is(rec) && s.vouched(rec, time.Now()) {
			_, keep := s.l.remaining(s.head)
			rec.Received, rec.Terms = s.head.Received, s.head.Terms
			cacheguard.SetTTL(ctx, keep)
			return rec.Encode(), nil
		}
	}
	rec, keep := s.ask(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("middleware: %w: %w", ctx.Err(), context.Cause(ctx))
	}
	cacheguard.SetTTL(ctx, keep)
	return rec.Encode(), nil
}

package sliced

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// slice is one slice of a page.
type slice struct {
	page        *Page
	first, last int64 // of its bytes
}

// sliceAt is the slice that has a byte of the page.
func (p *Page) sliceAt(at int64) *slice {
	size := int64(p.Store.Size)
	first := at - at%size
	return &slice{page: p, first: first, last: first + min(size, p.Head.Length-first) - 1}
}

func (s *slice) length() int { return int(s.last - s.first + 1) }

// key does not name the response, so that slices of a page that has changed replace the old ones.
func (s *slice) key() string {
	p := s.page
	return p.Store.Names.Key("slice", strconv.FormatInt(s.first, 10)+"/"+strconv.Itoa(p.Store.Size)+canonical.Separator+p.Key)
}

// contentRange is the Content-Range of a response that is this slice.
func (s *slice) contentRange() string {
	return fmt.Sprintf("bytes %d-%d/%d", s.first, s.last, s.page.Head.Length)
}

// maxTries is how often a slice is requested when the joined load was for another response of the URL, or for a client that the handler
// refuses.
const maxTries = 3

// retrieve gets the bytes of the slice, from the cache or the handler. The error is a Refusal if the handler does not have it.
func (s *slice) retrieve(ctx context.Context) (body []byte, how cacheguard.Outcome, err error) {
	source := cacheguard.Source[[]byte]{Judge: s.evaluate, Load: s.load, Unlimited: s.page.Store.Unlimited, Part: true}
	key := s.key()
	for tries := range maxTries {
		raw, how, err := cacheguard.Fetch(ctx, s.page.Store.Guard, key, source)
		if err != nil {
			return nil, how, err
		}
		switch rec, err := record.Decode(raw); {
		case err != nil || !s.ofPage(rec):
		case rec.Kind == record.PassThrough && (how != cacheguard.Shared || tries == maxTries-1):
			return nil, how, Refusal(rec.Why())
		case s.is(rec):
			return rec.Body, how, nil
		}
	}
	return nil, "", cacheguard.ErrNotCached
}

// ofPage reports whether a record is about the response that the page's record is of.
func (s *slice) ofPage(rec *record.Record) bool {
	return rec.Page == s.page.Head.Parts && rec.Location == s.page.Head.Location
}

// is reports whether a record is this slice.
func (s *slice) is(rec *record.Record) bool {
	return rec.Kind == record.Stored && s.ofPage(rec) && len(rec.Body) == s.length() && rec.Get("Content-Range") == s.contentRange()
}

// evaluate decides whether what is stored may be used. The page itself has been evaluated before.
func (s *slice) evaluate(raw []byte) cacheguard.Verdict {
	rec, err := record.Decode(raw)
	now, head := s.page.Store.Clock.Now(), s.page.Head
	switch {
	case err != nil || !s.is(rec):
		return cacheguard.Replace
	case rec.Fresh(now) > 0:
		return cacheguard.Serve
	case s.vouched(rec, now) && head.Fresh(now) > 0:
		return cacheguard.Refresh // otherwise it would expire by its own terms
	case s.vouched(rec, now), rec.Fresh(now) >= head.Fresh(now): // as stale as the page may be served
		return cacheguard.Serve
	}
	return cacheguard.Replace
}

// vouched reports whether the page's record is later than the slice. Then its freshness counts for the slice too, as both have the same
// strong validator (RFC 9111 section 4.3.4). So no slice is older than the page.
func (s *slice) vouched(rec *record.Record, now time.Time) bool {
	return s.page.Head.Age(now) <= rec.Age(now)
}

// load asks the handler for the slice. A slice that the page's record vouches for is stored again instead, for as long as that is.
func (s *slice) load(ctx context.Context, old *[]byte) ([]byte, error) {
	if old != nil {
		if rec, err := record.Decode(*old); err == nil && s.is(rec) && s.vouched(rec, s.page.Store.Clock.Now()) {
			rec.Received, rec.Terms = s.page.Head.Received, s.page.Head.Terms
			cacheguard.KeepTags(ctx)
			cacheguard.SetTTL(ctx, s.page.Store.Rules.Remaining(s.page.Head, s.page.Store.Clock.Now()))
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

// record describes an answer about the slice.
func (s *slice) record(kind record.Kind, status int, received time.Time) *record.Record {
	head := s.page.Head
	return &record.Record{Kind: kind, Page: head.Parts, Location: head.Location, Status: status, Received: received}
}

// refuse makes the answer for those who wait for a slice that does not exist. It is not stored.
func (s *slice) refuse(why Refusal) (*record.Record, time.Duration) {
	rec := s.record(record.PassThrough, 0, s.page.Store.Clock.Now())
	rec.SetWhy(string(why))
	return rec, 0
}

// request makes the request for the handler. (If-Match would not do: caches between here and the origin would have to pass it
// on.)
func (s *slice) request(ctx context.Context) *http.Request {
	r := s.page.Ask(ctx)
	rules.DropConditions(r.Header)
	_, validator := s.validator()
	r.Header.Set("If-Range", validator)
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", s.first, s.last))
	return r
}

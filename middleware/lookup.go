package middleware

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
)

// lookup is one page or variant that a request asks the Guard for. A load of it may outlive the request, and then must not
// look at more of the request than it was given here.
type lookup struct {
	*exchange
	key   string
	page  string // of a variant: the id of its page
	why   string // what Cache-Status says of having asked the handler
	route *chi.Context
	seat  seat

	seen     *record // what judge decoded last, where from, and whether the request selects it
	seenAt   *byte
	seenMine bool

	// Set by judge, in the request's goroutine, before a load that is due to it begins.
	old        *record // what is to be replaced
	revoked    bool    // it was invalidated: nothing of it may be served again
	background bool    // the request is answered with it meanwhile
}

// fetched is what a lookup came to.
type fetched struct {
	rec  *record
	mine bool // the request selects the record
	how  cacheguard.Outcome
	err  error
	own  *run // the handler's run for this very request, if there was one
}

func (x *exchange) lookup(key, page, why string) *lookup {
	l := &lookup{exchange: x, key: key, page: page, why: why}
	if route := chi.RouteContext(x.r.Context()); route != nil {
		l.route = route.Clone() // chi uses it again as soon as the request is answered
	}
	return l
}

// fetch gets the record, from the cache or the handler.
func (l *lookup) fetch() fetched {
	source := cacheguard.Source[[]byte]{Judge: l.judge, Load: l.load}
	if l.r.Method == http.MethodHead || len(l.r.Header["Range"]) > 0 || l.want.onlyIfCached {
		source.Load = nil // what the handler would answer to that is not the whole response
	}
	raw, how, err := cacheguard.Fetch(l.r.Context(), l.guard, l.key, source)
	got := fetched{how: how, err: err, own: l.seat.leave()}
	switch {
	case err != nil:
	case l.seen != nil && len(raw) > 0 && &raw[0] == l.seenAt:
		got.rec, got.mine = l.seen, l.seenMine
	default:
		if got.rec, got.err = decodeRecord(raw); got.err == nil {
			got.mine = got.rec.selects(l.r)
		}
	}
	return got
}

// overtaken reports whether the request may not have what a load that it joined brought: it stands in for a failure, which this
// request has not accepted; or an invalidation came after that load began. The Guard knows this of the record's own key only;
// what belongs to a page, a tag or a prefix is told by what they are now. (While Redis does not answer, nobody knows.)
func (l *lookup) overtaken(got fetched) bool {
	switch rec := got.rec; {
	case rec == l.seen, l.page == "" && !got.mine:
		return false // judged; or not used itself
	case rec.standsIn && !l.mayStandIn(rec, time.Now()):
		return true
	case got.how == cacheguard.Bypassed:
		return false
	default:
		return rec.page != l.page || !l.holds(l.r.Context(), rec.versions)
	}
}

// judge says whether a stored record may answer the request.
func (l *lookup) judge(raw []byte) cacheguard.Verdict {
	rec, err := l.decoded.of(l.key, raw)
	if err != nil {
		return cacheguard.Replace
	}
	l.seen, l.seenAt, l.seenMine = rec, &raw[0], rec.selects(l.r)
	if l.page == "" && !l.seenMine {
		return cacheguard.Serve // it says where the variants are
	}
	l.old, l.revoked = rec, rec.page != l.page || !l.seenMine
	if l.revoked {
		return cacheguard.Replace
	}
	verdict := l.verdict(rec, time.Now())
	if verdict != cacheguard.Replace && !l.holds(l.r.Context(), rec.versions) {
		l.revoked = true
		verdict = cacheguard.Replace
	}
	if rec.kind == stored && verdict == cacheguard.Replace && !l.revoked { // of what was invalidated, none counts as there
		l.why = "stale"
		if rec.fresh(time.Now()) > 0 {
			l.why = "request"
		}
	}
	l.background = verdict == cacheguard.Refresh
	return verdict
}

// verdict judges a record by its age (RFC 9111 sections 4.2 and 5.2, RFC 5861).
func (l *lookup) verdict(rec *record, now time.Time) cacheguard.Verdict {
	if rec.kind != stored {
		if now.Sub(rec.received) < rec.until {
			return cacheguard.Serve
		}
		return cacheguard.Replace
	}
	age, ttl, want := rec.age(now), rec.fresh(now), &l.want
	switch {
	case rec.terms.noCache, want.noCache, want.maxAge.given && age > want.maxAge.Duration,
		want.minFresh.given && ttl < want.minFresh.Duration:
		return cacheguard.Replace
	case ttl > 0:
		return cacheguard.Serve
	case rec.terms.strict, want.maxAge.given && !want.maxStale.given:
		return cacheguard.Replace
	case -ttl < rec.terms.swr:
		return cacheguard.Refresh
	case want.maxStale.given && -ttl <= want.maxStale.Duration && !rec.terms.noStale:
		return cacheguard.Serve
	}
	return cacheguard.Replace
}

// mayStandIn reports whether a stale record may be served to the request because the handler failed.
func (l *lookup) mayStandIn(old *record, now time.Time) bool {
	if old == nil || old.terms.strict || old.terms.noCache {
		return false
	}
	longest := old.terms.sie
	if !old.terms.noStale {
		longest = max(longest, l.want.staleIfError.Duration)
	}
	return -old.fresh(now) < longest
}

// usable is the record that is to be replaced, if something of it may still be used.
func (l *lookup) usable() *record {
	if l.old == nil || l.revoked || l.old.kind != stored {
		return nil
	}
	return l.old
}

// age is current_age of RFC 9111 section 4.2.3.
func (e *record) age(now time.Time) time.Duration {
	return e.terms.age + max(0, now.Sub(e.received))
}

// fresh is how long the record is still fresh; 0 or less: it is stale.
func (e *record) fresh(now time.Time) time.Duration { return e.terms.lifetime - e.age(now) }

// result is the word for how the request was answered.
func (f *fetched) result() Result {
	switch {
	case f.err != nil:
		return Failed
	case f.rec.kind != stored:
		return Passed
	case f.rec.standsIn:
		return Stale
	}
	switch f.how {
	case cacheguard.Loaded:
		return Loaded
	case cacheguard.Shared:
		return Shared
	case cacheguard.Bypassed:
		return Bypassed
	case cacheguard.Stale:
		return Stale
	}
	return Hit
}

func isTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

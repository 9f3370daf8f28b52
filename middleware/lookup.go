package middleware

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/record"
)

// lookup is one page or variant that a request asks the Guard for. A load of it may outlive the request, and then must not
// look at more of the request than it was given here.
type lookup struct {
	x       *exchange
	variant variant
	key     string
	why     string // what Cache-Status says of having asked the handler
	route   *chi.Context
	seat    seat
	anew    *anew // as the exchange had it when the lookup began

	// Set by judge, in the request's goroutine.
	seen     *record.Record // what was decoded last, and whether the request selects it
	seenMine bool

	// Likewise, before a load that is due to it begins.
	old        *record.Record // what is to be replaced
	revoked    bool           // it was invalidated: nothing of it may be served again
	background bool           // the request is answered with it meanwhile
	told       chan bool      // of a mark whose time is up: whether it still holds, as the request's own response shows
}

// fetched is what a lookup came to.
type fetched struct {
	rec  *record.Record
	mine bool // the request selects the record
	how  cacheguard.Outcome
	err  error
	own  *run // the handler's run for this very request, if there was one
}

func newLookup(x *exchange, v variant, why string) *lookup {
	l := &x.first
	if l.x != nil { // it is in use, perhaps for longer than the request
		l = new(lookup)
	}
	l.x, l.variant, l.why, l.anew = x, v, why, x.anew
	if v.page == "" {
		l.key = x.page
	} else {
		l.key = x.cache.cfg.variantKey(x.location, v.values)
	}
	if route := chi.RouteContext(x.r.Context()); route != nil {
		l.route = route.Clone() // chi uses it again as soon as the request is answered
	}
	return l
}

// fetch gets the record, from the cache or the handler.
func (l *lookup) fetch() fetched {
	source := cacheguard.Source[[]byte]{Judge: l.judge, Load: l.load, Unlimited: !l.x.cache.cfg.LimitLoads}
	if l.x.want.OnlyIfCached || routedForHead(l.x.r) {
		source.Load = nil
	}
	raw, how, err := cacheguard.Fetch(l.x.r.Context(), l.x.cache.guard, l.key, source)
	got := fetched{how: how, err: err, own: l.seat.leave()}
	switch {
	case err != nil:
	case l.seen != nil && l.seen.IsOf(raw):
		got.rec, got.mine = l.seen, l.seenMine
	default:
		if got.rec, got.err = record.Decode(raw); got.err == nil {
			got.mine = selects(got.rec, l.x.r, l.x.unnamed)
		}
	}
	if got.err == nil && (got.rec.Location != l.x.location || l.leftOver(got)) {
		got.err = cacheguard.ErrNotCached
	}
	return got
}

// leftOver reports whether a load that the request joined brought no response, but what was there before, and the request may not
// have that.
func (l *lookup) leftOver(got fetched) bool {
	return got.rec.Leftover && !got.rec.StandsIn && got.rec != l.seen && got.own == nil && got.mine && l.assess(got.rec, time.Now()) == cacheguard.Replace
}

// overtaken reports whether the request may not have what a load that it joined brought: it stands in for a failure, which this
// request has not accepted; or an invalidation came after that load began. The Guard knows this of the record's own key only;
// what belongs to a page, a tag or a prefix is told by what they are now. (While Redis does not answer, nobody knows.)
func (l *lookup) overtaken(got fetched) bool {
	switch rec := got.rec; {
	case rec == l.seen, l.variant.page == "" && !got.mine:
		return false // judged; or not used itself
	case rec.StandsIn && !l.mayStandIn(rec, time.Now()):
		return true
	case got.how == cacheguard.Bypassed:
		return false
	default:
		return rec.Page != l.variant.page || !l.x.cache.holds(l.x.r.Context(), rec.Versions)
	}
}

// judge says whether a stored record may answer the request.
func (l *lookup) judge(raw []byte) cacheguard.Verdict {
	l.told, l.x.due, l.background = nil, nil, false // of what was read before, in the local tier say
	rec, err := l.x.cache.decoded.of(l.key, raw)
	if err != nil || rec.Location != l.x.location {
		return cacheguard.Replace
	}
	l.seen, l.seenMine = rec, selects(rec, l.x.r, l.x.unnamed)
	if l.variant.page == "" && !l.seenMine {
		return cacheguard.Serve // it says where the variants are
	}
	l.old, l.revoked = rec, rec.Page != l.variant.page || !l.seenMine || !l.x.cache.holds(l.x.r.Context(), rec.Versions)
	if l.revoked || l.anew.isFor(rec) { // of what was invalidated, none may validate it or stand in either
		return cacheguard.Replace
	}
	verdict := l.assess(rec, time.Now())
	if rec.IsResponse() && verdict == cacheguard.Replace {
		l.why = "stale"
		if rec.Fresh(time.Now()) > 0 {
			l.why = "request"
		}
	}
	l.background = verdict == cacheguard.Refresh
	if l.background && !rec.IsResponse() {
		l.told, l.x.due = make(chan bool, 1), l
	}
	return verdict
}

// assess judges a record by its age (RFC 9111 sections 4.2 and 5.2, RFC 5861), and by whether it has what the request wants.
func (l *lookup) assess(rec *record.Record, now time.Time) cacheguard.Verdict {
	if !rec.IsResponse() {
		return assessMark(rec, now)
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

// assessMark judges a mark. When its time is up, requests go on to pass for as long again, and the first of them tells whether
// what it got may still not be stored: nobody has to wait for that.
func assessMark(rec *record.Record, now time.Time) cacheguard.Verdict {
	switch age := now.Sub(rec.Received); {
	case age < rec.Until:
		return cacheguard.Serve
	case age < 2*rec.Until:
		return cacheguard.Refresh
	}
	return cacheguard.Replace
}

// mayStandIn reports whether a stale record may be served to the request because the handler failed. An error does not stand in
// for another.
func (l *lookup) mayStandIn(old *record.Record, now time.Time) bool {
	if old == nil || old.Status >= 500 || old.Terms.Strict || old.Terms.NoCache {
		return false
	}
	longest := old.Terms.SIE
	if !old.Terms.NoStale {
		longest = max(longest, l.x.want.StaleIfError.Duration)
	}
	return -old.Fresh(now) < longest
}

// usable is the record that is to be replaced, if something of it may still be used.
func (l *lookup) usable() *record.Record {
	if l.old == nil || l.revoked || !l.old.IsResponse() || l.anew.passes() {
		return nil
	}
	return l.old
}

// part reports whether the request wants a part of the page: a range, or the header alone. The page is loaded as a whole then.
func (l *lookup) part() bool {
	return l.x.r.Method == http.MethodHead || len(l.x.r.Header["Range"]) > 0
}

// result is the word for how the request was answered.
func (f *fetched) result() Result {
	switch {
	case f.err != nil:
		return Failed
	case !f.rec.IsResponse():
		return Passed
	case f.rec.StandsIn:
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

// namedFields are the fields by which the variants of a page are told apart, as Vary names them.
func namedFields(rec *record.Record) (names []string) {
	for _, p := range rec.Vary {
		if !strings.HasPrefix(p.Name, unnamed) {
			names = append(names, p.Name)
		}
	}
	return names
}

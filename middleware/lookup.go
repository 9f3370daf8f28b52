package middleware

import (
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/cache/pages"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/sliced"
)

// lookup asks the Guard for the record of a page or of a variant. A load of it may outlive the request.
type lookup struct {
	x       *exchange
	variant variant
	key     string
	read    pages.Read   // the context of ask
	why     string       // why the handler is asked, as Cache-Status says it
	routing *chi.Context // a copy: chi reuses its own as soon as the request is answered
	outlet  outlet
	reload  *reload // of the exchange, when the lookup began

	// Set by evaluate, in the request's goroutine.
	seen     *record.Record // the record that was decoded last
	seenMine bool           // the request selects it
	seenAt   time.Time      // when that was; zero: its age did not matter

	// Set by evaluate too, before it causes a load.
	previous   *record.Record // the record that is to be replaced
	revoked    bool           // previous was invalidated: nothing of it may be served again
	background bool           // the request is answered with previous in the meantime
	markHolds  chan bool      // previous is a mark whose time is up: see mark.go
}

// found is the outcome of a lookup.
type found struct {
	rec  *record.Record
	mine bool // the request selects the record
	how  cacheguard.Outcome
	err  error
	own  *build // the build that ran for this very request, if there was one
}

// variant is one of the variants of a page, or, if page is empty, the page itself.
type variant struct {
	page     string        // the ID of the page
	old      string        // the ID that the page had before a soft invalidation
	softened time.Time     // when that was
	left     time.Duration // for how long the page's own record is there
	fields   []string      // that tell its variants apart
	values   []record.Pair // of the fields, in the request
}

// find gets the record that the request selects. The page's own record is the variant that was made first, and names the fields that
// tell variants apart. If it does not suit the request, the lookup goes on under the key of these fields' values.
func (x *exchange) find() (*lookup, found) {
	l, got := x.retrieve(variant{}, "uri-miss")
	if got.err == nil && got.rec.Kind == record.Moved && (got.own == nil || got.own.unheard || x.warming) {
		x.searchBy(canonical.SearchOf(got.rec.HTTPHeader()))
		l, got = x.retrieve(variant{}, "uri-miss")
	}
	if got.err == nil && got.own == nil && !got.mine {
		fields := slices.Compact(slices.Sorted(slices.Values(append(canonical.NamedFields(got.rec), x.varies...))))
		values := x.cache.names.Selection(x.r, fields, x.unnamed)
		l, got = x.retrieve(variant{page: got.rec.ID, old: got.rec.Old, softened: got.rec.Softened, left: x.left(got.rec), fields: fields, values: values}, "vary-miss")
	}
	return l, got
}

// maxTries is how often a request asks again because an invalidation overtook the load that it joined.
const maxTries = 3

// retrieve gets the record of a page or of a variant, and makes sure that no invalidation has overtaken it.
func (x *exchange) retrieve(v variant, why string) (l *lookup, got found) {
	for i := range maxTries {
		if l = newLookup(x, v, why); i == 0 {
			l.use()
		}
		if got = l.ask(); got.err != nil || got.own != nil || !l.overtaken(got) {
			return l, got
		}
	}
	return l, found{err: cacheguard.ErrNotCached}
}

func newLookup(x *exchange, v variant, why string) *lookup {
	l := &x.first
	if l.x != nil { // it is in use, perhaps for longer than the request
		l = new(lookup)
	}
	l.x, l.variant, l.why, l.reload, l.key = x, v, why, x.reload, x.key
	if v.page != "" {
		l.key = x.cache.names.VariantKey(x.location, v.values)
	}
	if routing := chi.RouteContext(x.r.Context()); routing != nil {
		l.routing = routing.Clone()
	}
	return l
}

// ask asks the Guard, which calls evaluate for a stored record, and load for a missing one.
func (l *lookup) ask() found {
	source := cacheguard.Source[[]byte]{
		Judge: l.evaluate, Load: l.load, Unlimited: !l.x.cache.cfg.LimitLoads, Tags: l.x.cache.prefixTags(l.x.r),
	}
	if l.x.cache.tagged.Load() || len(source.Tags) > 0 {
		source.DespiteTags = l.leadsToVariants
	}
	if l.x.warming {
		source.Unlimited = false
	}
	if l.x.want.OnlyIfCached || routedForHead(l.x.r) {
		source.Load = nil
	}
	l.read = pages.Read{Context: l.x.r.Context(), Key: l.key, Finish: l.x.cache.cfg.FinishLoads}
	raw, how, err := cacheguard.Fetch(&l.read, l.x.cache.guard, l.key, source)
	got := found{how: how, err: err, own: l.outlet.leave()}
	switch {
	case err != nil:
	case l.seen != nil && l.seen.IsOf(raw):
		got.rec, got.mine = l.seen, l.seenMine
		if how == cacheguard.Local {
			l.x.cache.decoded.Keep(l.key, got.rec)
		}
	default:
		if got.rec, got.err = record.Decode(raw); got.err == nil {
			got.mine = l.x.selects(got.rec)
		}
	}
	if got.err == nil && (got.rec.Location != l.x.location || l.refusesLeftover(got)) {
		got.err = cacheguard.ErrNotCached
	}
	return got
}

// refusesLeftover reports whether the load that the request joined left the earlier record in place, and that record does not satisfy the
// request.
func (l *lookup) refusesLeftover(got found) bool {
	return got.rec.Leftover && !got.rec.StandsIn && got.rec != l.seen && got.own == nil && got.mine &&
		l.freshness(got.rec, l.x.now()) == cacheguard.Replace
}

// overtaken reports whether the request must not have the result of the load that it joined: a stale page in place of a failure, which
// this request does not accept, or a page that an invalidation has overtaken. The Guard notices only invalidations of the record's own
// key. Those of its page, a tag or a prefix show in their current values, unless Redis does not answer.
func (l *lookup) overtaken(got found) bool {
	switch rec := got.rec; {
	case rec == l.seen, l.variant.page == "" && !got.mine:
		return false // evaluated already; or not used itself
	case rec.StandsIn && !l.mayStandIn(rec, l.x.now()):
		return true
	case got.how == cacheguard.Bypassed:
		return false
	default:
		return rec.Page != l.variant.page
	}
}

// usable is the record that is to be replaced, if any of it may still be used.
func (l *lookup) usable() *record.Record {
	if l.previous == nil || l.revoked || !l.previous.IsResponse() || l.reload.isUnsliceable() {
		return nil
	}
	return l.previous
}

// wantsPart reports whether the request wants a range, or the header alone. The page is loaded whole then.
func (l *lookup) wantsPart() bool {
	return l.x.r.Method == http.MethodHead || len(l.x.r.Header["Range"]) > 0
}

// slices is the page in slices that has the record as its header.
func (l *lookup) slices(head *record.Record) *sliced.Page {
	return &sliced.Page{
		Store: l.x.cache.slices, Head: head, Key: l.key, Client: l.x.r, Front: l.x.front, Handler: l.x.next, Ask: l.backgroundRequest,
	}
}

// sentAt is the time for the age of what was found: when it was evaluated, if nothing was waited for since.
func (l *lookup) sentAt(got found) time.Time {
	if got.how == cacheguard.Local && got.rec == l.seen && !l.seenAt.IsZero() {
		return l.seenAt
	}
	return l.x.now()
}

// result is the word for how the request was answered.
func (f *found) result() Result {
	switch {
	case f.err != nil:
		return Failed
	case !f.rec.IsResponse():
		return passedFor(f.rec.Why())
	case f.own != nil && f.own.refused != "":
		return Refused
	case f.rec.StandsIn:
		return Stale
	}
	switch f.how {
	case cacheguard.Loaded, cacheguard.Shared, cacheguard.Bypassed, cacheguard.Stale:
		return Result(f.how)
	}
	return Hit
}

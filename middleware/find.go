package middleware

import (
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// found is the outcome of a lookup.
type found struct {
	rec  *record.Record
	mine bool // the request selects the record
	how  cacheguard.Outcome
	err  error
	own  *build // the build that ran for this very request, if there was one
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

// notStored is why the response is not stored.
func (f *found) notStored() string {
	switch {
	case f.own != nil && f.own.refused != "":
		return f.own.refused
	case f.err == nil && !f.rec.IsResponse():
		return f.rec.Why()
	}
	return ""
}

// trailer is what follows the body: for the client that caused the response, also what may not be stored.
func (f *found) trailer() []record.Pair {
	if f.own == nil || f.own.trailer == nil {
		return f.rec.Trailer
	}
	return record.Pairs(f.own.trailer, func(string) bool { return false })
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
		fields := rules.Sorted(append(canonical.NamedFields(got.rec), x.varies...))
		values := x.cache.names.Selection(x.r, fields, x.unnamed)
		l, got = x.retrieve(variant{of: got.rec, fields: fields, values: values}, "vary-miss")
	}
	return l, got
}

// maxTries is how often a request asks again because an invalidation overtook the load that it joined.
const maxTries = 3

// retrieve gets the record of a page or of a variant, and makes sure that no invalidation has overtaken it.
func (x *exchange) retrieve(v variant, why string) (l *lookup, got found) {
	for i := range maxTries {
		if l = x.newLookup(v, why); i == 0 {
			l.use()
		}
		if got = l.ask(); l.markHolds != nil {
			x.checked = l
		}
		if got.err != nil || got.own != nil || !l.overtaken(got) {
			return l, got
		}
	}
	return l, found{err: cacheguard.ErrNotCached}
}

func (x *exchange) newLookup(v variant, why string) *lookup {
	l := &x.first
	if l.x != nil { // it is in use, perhaps for longer than the request
		l = new(lookup)
	}
	l.x, l.variant, l.why, l.reload, l.client = &x.request, v, why, x.reload, x
	if l.key = x.key; v.of != nil {
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
		Finish: l.x.cache.cfg.FinishLoads, Past: &l.past, Part: true,
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
	raw, how, err := cacheguard.Fetch(l.x.r.Context(), l.x.cache.guard, l.key, source)
	got := found{how: how, err: err, own: l.leave()}
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
	case rec == l.seen, l.variant.of == nil && !got.mine:
		return false // evaluated already; or not used itself
	case rec.StandsIn && !l.x.mayStandIn(rec, l.x.now()):
		return true
	case got.how == cacheguard.Bypassed:
		return false
	default:
		return rec.Page != l.variant.page()
	}
}

// sentAt is the time for the age of what was found: when it was evaluated, if nothing was waited for since.
func (l *lookup) sentAt(got found) time.Time {
	if got.how == cacheguard.Local && got.rec == l.seen && !l.seenAt.IsZero() {
		return l.seenAt
	}
	return l.x.now()
}

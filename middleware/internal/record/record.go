// Package record is what the cache stores for a page: a response with its terms of reuse, or a mark that there is none.
//
// It holds the encoding, and what a record says about itself: its age, and whether it may still be served. Package middleware decides
// what a request may have.
package record

import (
	"iter"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Kind says what a record is.
type Kind byte

// The kinds. PassThrough, Moved and Failed are marks: records without a response.
const (
	Stored      Kind = 'r' // a response
	Sliced      Kind = 's' // a response without its body, which is stored in slices
	PassThrough Kind = 'p' // the response could not be stored, and requests go straight to the handler
	Moved       Kind = 'm' // the page is to be looked for by what its No-Vary-Search says
	Failed      Kind = 'f' // the handler panicked, and the requests that waited for it get an error
)

// Record is what the Guard stores for a page, for a variant of it, or for a slice.
type Record struct {
	Kind     Kind
	ID       string // identifies a page to its variants
	Old      string // of a page: the ID that it had before Softened
	Page     string // of a variant: the ID of its page; of a slice: the Parts of its page
	Location string // the URL that was asked for, in full, as keys are shortened
	Route    string // pattern of the route that made the response
	Status   int
	Received time.Time
	Terms    Terms         // as they were at Received
	Until    time.Duration // PassThrough: how long the mark holds, from Received on
	Variants time.Duration // how long the variants of the page need it, from Received on
	Softened int64         // when a soft invalidation made it stale, in Unix milliseconds; 0: none did
	StandsIn bool          // it is stale, and served because the handler failed
	Leftover bool          // it was there before, and the response that should have replaced it could not be stored
	Vary     []Pair        // the fields that select it, with their values in the request
	Front    []Pair        // what its handler did to fields that had been set in front of the cache
	Header   []Pair        // of its handler alone
	Trailer  []Pair
	Body     []byte
	Length   int64  // Sliced: of the whole body
	Parts    string // Sliced: identifies the response to its slices

	raw []byte // what it was decoded from
}

// Terms are what the header of a response says about reusing it.
type Terms struct {
	Explicit bool          // the response itself says how long it is fresh
	Lifetime time.Duration // how long it is fresh, counted from age 0
	Age      time.Duration // when it was received: corrected_initial_age of RFC 9111 section 4.2.3
	NoCache  bool          // to be validated before each use
	Strict   bool          // must-revalidate or proxy-revalidate: never served stale
	NoStale  bool          // s-maxage: served stale only if the response itself allows it
	Shared   bool          // public, s-maxage or must-revalidate: also for requests with Authorization
	SWR, SIE time.Duration // stale-while-revalidate and stale-if-error
}

// MayBeStale reports whether the response may be served stale though it does not say so itself.
func (t *Terms) MayBeStale() bool { return !t.Strict && !t.NoStale && !t.NoCache }

// Longest is the longest time that a response may be fresh, or be served stale. Ages and overdue times go on for four times as long, so
// where a sum of them saturates, nothing counts as fresh or servable.
const Longest = 1 << 31 * time.Second

// Plus is a + b, or the closest duration to it whose negative is a duration too.
func Plus(a, b time.Duration) time.Duration {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return -math.MaxInt64
	default:
		return max(sum, -math.MaxInt64)
	}
}

// Pair is a name and a value.
type Pair struct{ Name, Value string }

// IsOf reports whether the record was decoded from this very memory.
func (e *Record) IsOf(raw []byte) bool {
	return len(raw) > 0 && len(raw) == len(e.raw) && &raw[0] == &e.raw[0]
}

// WasRead reports whether the record, or the one that it is a copy of, was decoded, and not made.
func (e *Record) WasRead() bool { return e.raw != nil }

// IsResponse reports whether the record has a response to send.
func (e *Record) IsResponse() bool { return e.Kind == Stored || e.Kind == Sliced }

// IsGuess reports whether nothing says that the response is the same for everybody, nor how long it is fresh.
func (e *Record) IsGuess() bool { return !e.Terms.Explicit && !e.Terms.Shared && e.Terms.Lifetime > 0 }

// Age is current_age of RFC 9111 section 4.2.3.
func (e *Record) Age(now time.Time) time.Duration {
	return Plus(max(0, e.Terms.Age), max(0, now.Sub(e.Received)))
}

// Fresh is how long the record is still fresh; 0 or less: it is stale.
func (e *Record) Fresh(now time.Time) time.Duration {
	return Plus(min(e.Terms.Lifetime, Longest), -e.Age(now))
}

// Servable reports whether a request without wishes of its own gets the record as it is: fresh, or stale while it is revalidated.
func (e *Record) Servable(now time.Time) bool {
	fresh := e.Fresh(now)
	return !e.Terms.NoCache && (fresh > 0 || !e.Terms.Strict && -fresh < e.Terms.SWR)
}

// MayStandIn reports whether the record may be served stale because the handler failed. Accepted is how stale the request accepts it
// then. An error does not stand in for another.
func (e *Record) MayStandIn(accepted time.Duration, now time.Time) bool {
	if e.Status >= 500 || e.Terms.Strict || e.Terms.NoCache {
		return false
	}
	longest := e.Terms.SIE
	if !e.Terms.NoStale {
		longest = max(longest, accepted)
	}
	return -e.Fresh(now) < longest
}

// whyField is the only field of a mark.
const whyField = "Why"

// SetWhy makes a mark say why no response was stored.
func (e *Record) SetWhy(why string) { e.Header = []Pair{{whyField, why}} }

// Why is why no response was stored, as a mark says.
func (e *Record) Why() string { return e.Get(whyField) }

// Get returns the first value of a field of the header.
func (e *Record) Get(name string) string {
	for _, p := range e.Header {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// Pairs lists the fields of a header in order of their names, so that equal responses are equal records.
func Pairs(h http.Header, skip func(name string) bool) (list []Pair) {
	for name, values := range h {
		if skip(name) {
			continue
		}
		for _, value := range values {
			list = append(list, Pair{name, value})
		}
	}
	slices.SortStableFunc(list, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// HTTPHeader is the header of a record.
func (e *Record) HTTPHeader() http.Header {
	return maps.Collect(e.Fields())
}

// maxPairs bounds each of the lists of a record.
const maxPairs = 1024

// Fits reports whether a record can have that many fields.
func Fits(h http.Header) bool {
	values := 0
	for _, lines := range h {
		values += len(lines)
	}
	return values <= maxPairs && strings.Count(strings.Join(h["Vary"], ","), ",") < maxPairs/2
}

// Clean reports whether a record can have such fields.
func Clean(fields []Pair) bool { return !slices.ContainsFunc(fields, Pair.bad) }

// Fields iterates over the header by name.
func (e *Record) Fields() iter.Seq2[string, []string] {
	values := make([]string, len(e.Header))
	for i, p := range e.Header {
		values[i] = p.Value
	}
	return func(yield func(string, []string) bool) {
		for from := 0; from < len(values); {
			to := from + 1
			for to < len(values) && e.Header[to].Name == e.Header[from].Name {
				to++
			}
			if !yield(e.Header[from].Name, values[from:to:to]) {
				return
			}
			from = to
		}
	}
}

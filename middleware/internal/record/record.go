// Package record is what the middleware keeps for a page: a response with what is needed to judge it, or word that there is
// none. It knows the bytes, what makes a record fit to be sent, and its age; what is done with a record is the middleware's.
package record

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Kind says what a record is.
type Kind byte

// The kinds.
const (
	Stored Kind = 'r' // a response
	Passed Kind = 'p' // a response could not be stored: requests go to the handler at once
	Failed Kind = 'f' // the handler panicked: those who waited for it are told
	Sliced Kind = 's' // a response without its body, which is in slices
)

// Record is what the Guard has for a page or a variant of it.
type Record struct {
	Kind     Kind
	ID       string // variants name the page they belong to by it
	Page     string // of a variant: the id of its page
	Location string // what was asked for, in full: keys are shortened
	Route    string // pattern of the route that made it
	Status   int
	Received time.Time
	Terms    Terms         // as they were when it was received
	Until    time.Duration // Passed: how long after it was received
	StandsIn bool          // it is stale, and served because the handler failed
	Leftover bool          // it was there before, and the response that was to replace it could not be stored
	Vary     []Pair        // fields that select it, and their values in the request
	Versions []Pair        // names and values of what it may be invalidated by
	Header   []Pair
	Trailer  []Pair
	Body     []byte
	Length   int64  // Sliced: of the whole body
	Parts    string // Sliced: the id by which the slices name the response

	raw []byte // what it was decoded from
}

// IsOf reports whether the record was decoded from this very memory.
func (e *Record) IsOf(raw []byte) bool {
	return len(raw) > 0 && len(raw) == len(e.raw) && &raw[0] == &e.raw[0]
}

// Terms are what a response's header says about using it again.
type Terms struct {
	Explicit bool          // the response itself says how long it is fresh
	Lifetime time.Duration // how long it is fresh, counted from its age 0
	Age      time.Duration // when it was received: corrected_initial_age of RFC 9111 section 4.2.3
	NoCache  bool          // to be validated before each use
	Strict   bool          // must-revalidate or proxy-revalidate: never served stale
	NoStale  bool          // s-maxage: served stale only as the response says itself
	Shared   bool          // public, s-maxage or must-revalidate: also for requests with Authorization
	SWR, SIE time.Duration // stale-while-revalidate and stale-if-error
}

// Pair is a name and a value.
type Pair struct{ Name, Value string }

// IsResponse reports whether the record is one of a response that may be sent again.
func (e *Record) IsResponse() bool { return e.Kind == Stored || e.Kind == Sliced }

// Age is current_age of RFC 9111 section 4.2.3.
func (e *Record) Age(now time.Time) time.Duration {
	return e.Terms.Age + max(0, now.Sub(e.Received))
}

// Fresh is how long the record is still fresh; 0 or less: it is stale.
func (e *Record) Fresh(now time.Time) time.Duration { return e.Terms.Lifetime - e.Age(now) }

// Get returns the value of a field of the header.
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
	h := make(http.Header, len(e.Header))
	for _, p := range e.Header {
		h[p.Name] = append(h[p.Name], p.Value)
	}
	return h
}

// maxPairs is how many values each of the lists of a record may have.
const maxPairs = 1024

// Fits reports whether a record can have the header.
func Fits(h http.Header) bool {
	values := 0
	for _, lines := range h {
		values += len(lines)
	}
	return values <= maxPairs && strings.Count(strings.Join(h["Vary"], ","), ",") < maxPairs/2
}

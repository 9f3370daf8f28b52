// Package sliced serves pages that are too large to be stored whole from slices of them.
//
// The record of such a page is its header alone. It is evaluated, validated, selected and invalidated like any page. Each slice of the
// body is a record and a load of its own, made once for all instances. A slice names the page's record by an identifier, its Parts, and
// is valid for no other. An invalidation of the page ends that identifier, so a slice needs neither tags nor variants, and nobody has
// to look for the slices of an invalidated page.
//
// A request with If-Range and Range asks the handler for a slice. If its answer is not exactly that slice, the page is refused (see
// Refusal): it is then loaded again, or marked as one that cannot be sliced.
package sliced

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// Store is where the pages of a cache have their slices.
type Store struct {
	Guard     *cacheguard.Guard
	Names     *canonical.Namer
	Rules     *rules.Settings
	Size      int // of a slice; 0: there are none
	Unlimited bool
	LogPanic  func(ctx context.Context, path string, panicked any, stack []byte)
	Clock     clock.Clock // that slices age by
}

// Page is a page in slices, as one request reads it.
type Page struct {
	Store   *Store
	Head    *record.Record
	Key     string        // of Head
	Client  *http.Request // the request that reads the page
	Front   http.Header   // what was set in front of it
	Handler http.Handler
	Ask     func(ctx context.Context) *http.Request // a request for the handler, without the client's Range
}

// Refusal is the error of a handler that does not have the slice that it was asked for.
type Refusal string

// The refusals.
const (
	Changed  Refusal = "changed"   // the page has changed by now
	NoRanges Refusal = "no-ranges" // the page cannot be put together from the handler's responses
	Failing  Refusal = "failing"   // the handler failed
)

// Error implements error.
func (why Refusal) Error() string { return "middleware: no slice of the page: " + string(why) }

// Possible reports whether parts of a response may be stored and put together (RFC 9111 sections 3.3 and 3.4).
func Possible(h http.Header, assessed *rules.Assessment, received time.Time) bool {
	_, typed := h["Content-Type"] // nobody sees the whole body, to detect it
	validator, _ := rules.StrongValidator(h.Get, received)
	return typed && validator != "" && assessed.Unfit == "" && assessed.Explicit && len(h["Trailer"]) == 0 &&
		!slices.Contains(rules.List(h["Accept-Ranges"]), "none") &&
		!slices.Contains(rules.Names(h["Vary"]), "Range") // each range would belong to another page
}

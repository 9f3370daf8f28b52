package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// PanicError is what a Cache panics with when a handler has panicked. The handler ran in another goroutine, whose stack would be lost.
// http.ErrAbortHandler is passed on as it is.
type PanicError struct {
	Value any    // what the handler panicked with
	Stack []byte // where it panicked, as formatted by runtime/debug.Stack
}

// Error includes the stack, because recovering middlewares print what they recover.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%v\n\nin the handler's goroutine:\n%s", e.Value, e.Stack)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// build is a handler at work on a response that may be stored. Its fields belong to the handler's goroutine until done is closed.
type build struct {
	lookup   *lookup
	validate *record.Record // the stale record that a 304 would confirm; nil: there is none
	w        *writer.Recorder
	done     chan struct{}
	end      func() (interrupted bool) // ends the handler's context
	began    time.Time
	received time.Time
	assessed rules.Assessment
	asked    *http.Request
	route    string
	refused  string // why Config.Limits forbid to store the response
	moved    bool   // the page is to be looked for by its No-Vary-Search
	unheard  bool   // nobody is there to get a response that cannot be stored

	confirmed   bool // the handler said that the stale record is good
	standsIn    bool // the handler failed, and the stale record is served
	interrupted bool // its context ended before its response was whole
	panicked    any  // what its request is to panic with

	trailer http.Header // of a response that is stored, all of it

	head *record.Record // of a response that is stored in slices; set when the header is given
	rec  *record.Record // what is made of the response
	keep time.Duration  // how long to keep rec

	stored atomic.Bool // set by the load
}

// errInterrupted says that the handler's context ended before its response was whole.
var errInterrupted = errors.New("middleware: the handler was interrupted")

// wasCutOff reports whether the handler ended before its response was complete: its context ended, or it aborted, as ReverseProxy does
// when the origin breaks off.
func (b *build) wasCutOff() bool {
	return b.panicked == http.ErrAbortHandler || b.panicked == nil && b.interrupted //nolint:errorlint // this very error
}

// isComplete reports whether the handler wrote as much as it announced.
func (b *build) isComplete() bool {
	declared := b.w.Sent.Get("Content-Length")
	return declared == "" || declared == strconv.Itoa(len(b.w.Body))
}

// isWhole reports whether the response itself shows that it is complete.
func (b *build) isWhole() bool {
	return !b.w.IsReleased() && b.panicked == nil && len(b.w.Body) > 0 && b.w.Sent.Get("Content-Length") != "" && b.isComplete()
}

// fitsSearch reports whether the response may be stored where it was looked for, by its No-Vary-Search.
func (b *build) fitsSearch(h http.Header) (fits bool) {
	fits, b.moved = b.lookup.x.learnSearch(b.asked.Context(), h)
	return fits
}

package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/middleware/internal/cachestatus"
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

// recorder returns a Recorder of the handler's response, for its client or, if it is unheard, for nobody.
func (b *build) recorder() *writer.Recorder {
	x, client := b.lookup.x, http.ResponseWriter(nil)
	if !b.unheard {
		client = x.w
	}
	w := writer.NewRecorder(client, x.r, x.front, x.cache.cfg.MaxBody)
	w.Decide, w.Hidden = b.decide, x.cache.hidden
	w.Before = func(status int) { x.setStatus(cachestatus.Forward{Why: b.lookup.why, Status: status, Detail: w.Unfit}) }
	return w
}

// handle calls the handler, and makes the record of its response. It leaves a panic to the request that joins the build.
func (b *build) handle(r *http.Request) {
	defer close(b.done)
	returned := false
	defer func() {
		if p := recover(); !returned {
			b.recovered(r, p)
		}
		b.interrupted = b.end() && !b.isWhole()
		b.rec, b.keep = b.outcome()
	}()
	b.call(r)
	if b.confirmed && !b.mayConfirm() {
		// The request goes through the router again, which must start from the beginning.
		r = b.lookup.backgroundRequest(r.Context())
		rules.DropConditions(r.Header)
		b.confirmed, b.validate = false, nil
		b.w.Reset()
		b.call(r)
	}
	returned = true
}

func (b *build) call(r *http.Request) {
	b.began, b.asked = b.lookup.x.now(), r
	b.lookup.x.next.ServeHTTP(b.w, r)
	b.w.Finish()
	b.route = route(r)
}

func (b *build) recovered(r *http.Request, panicked any) {
	if err, ok := panicked.(error); panicked == nil || ok && errors.Is(err, http.ErrAbortHandler) {
		b.panicked = http.ErrAbortHandler // recoverers compare it; nil: the handler ended its goroutine
		return
	}
	stack := debug.Stack()
	b.panicked = &PanicError{Value: panicked, Stack: stack}
	b.lookup.x.cache.logPanic(r.Context(), panicked, stack)
}

// decide reports whether the response is held back to be stored. It is called once its header is known.
func (b *build) decide(status int, h http.Header) writer.Decision {
	b.received, b.confirmed = b.lookup.x.now(), false
	b.lookup.x.cache.rules.Correct(b.lookup.x.r, h)
	switch {
	case status == http.StatusNotModified && b.validate != nil:
		b.confirmed = true
		return writer.Decision{Explicit: true, Discard: true}
	case rules.IsFailure(status) && b.lookup.mayStandIn(b.validate, b.received):
		b.standsIn = true
		return writer.Decision{Explicit: true, Discard: true}
	}
	cache, method := b.lookup.x.cache, b.lookup.x.r.Method
	b.assessed = cache.rules.Assess(b.lookup.x.r, b.reply(status, h))
	unfit := b.assessed.Unfit
	switch {
	case unfit != "":
	case !record.Fits(h):
		unfit = writer.TooLarge
	case !b.learnSearch(h):
		unfit = otherSearch
	case rules.DeclaredSize(status, h) > int64(cache.cfg.MaxBody):
		unfit = b.tooLarge(status, h)
	case method == http.MethodHead && (status != http.StatusOK || !b.assessed.Explicit):
		unfit = wrongMethod // a router in front may have chosen this handler for HEAD, and refuse other requests with it
	default:
		unfit, b.refused = b.limited(status)
	}
	return writer.Decision{Unfit: unfit, Explicit: b.assessed.Explicit}
}

func (b *build) reply(status int, h http.Header) rules.Reply {
	return rules.Reply{Status: status, Header: h, Front: b.lookup.x.front, Sent: b.began, Received: b.received}
}

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

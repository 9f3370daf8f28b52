package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// PanicError is what a Cache panics with when a handler that it called has panicked: that handler ran in another goroutine, whose
// stack would be lost. http.ErrAbortHandler stays what it is.
type PanicError struct {
	Value any    // what the handler panicked with
	Stack []byte // where, as formatted by runtime/debug.Stack
}

// Error has the stack too, as recoverers print what they recover.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%v\n\nin the handler's goroutine:\n%s", e.Value, e.Stack)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// run is a handler at work on a response that may be stored. Its fields are the handler's goroutine's until done is closed.
type run struct {
	l           *lookup
	old         *record.Record // what the handler may say is still good; nil: there is nothing
	w           *recorder
	done        chan struct{}
	end         func() (interrupted bool) // ends the handler's context
	began       time.Time
	received    time.Time
	terms       rules.Assessment
	asked       *http.Request // by the handler's goroutine alone
	route       string
	unheard     bool // nobody is there whom a response that cannot be stored could be sent to
	merges      bool // the handler said that the stale record is good
	standsIn    bool // the handler failed, and the stale record is served
	interrupted bool // its context ended before its response was whole
	panicked    any  // what its request is to panic with

	head    *record.Record // of a response that is kept in slices; set when the header is given
	rec     *record.Record // what is made of it
	keepFor time.Duration  // how long that is to be kept

	kept atomic.Bool // set by the load: the response was to be stored
}

func newRun(l *lookup) *run {
	out := &run{l: l, old: l.usable(), done: make(chan struct{}), end: func() bool { return false }}
	out.w = newRecorder(l.x.w, l.x.cache.cfg.MaxBody)
	out.w.keep = out.keep
	out.w.send = func(status int) { l.x.status(forwarded{why: l.why, status: status, detail: out.w.unfit}.String()) }
	out.w.unchanged = func(h http.Header) bool {
		return unchangedFor(l.x.r, func(name string) string {
			if name == "Date" { // it counts for Last-Modified of what is stored only
				return ""
			}
			return h.Get(name)
		})
	}
	return out
}

// sent reports whether something of the response went to its client while it was made. It is asked when the run is done.
func (out *run) sent() bool { return out.w.hijacked || out.w.open && out.w.out != nil }

// cutOff reports whether the handler ended without having ended its response: its context did, or it gave up, as ReverseProxy does
// when the origin breaks off.
func (out *run) cutOff() bool {
	return out.panicked == http.ErrAbortHandler || out.panicked == nil && out.interrupted //nolint:errorlint // this very error
}

// serve calls the handler. A panic is left to who joins the run.
func (out *run) serve(r *http.Request) {
	defer close(out.done)
	returned := false
	defer func() {
		if p := recover(); !returned {
			out.failed(r, p)
		}
		out.interrupted = out.end() && !out.whole()
		out.rec, out.keepFor = out.outcome()
	}()
	out.call(r)
	if out.merges && !(out.matches() && out.merged().fit()) {
		// A 304 about another response than the one we have (RFC 9111 section 4.3.4), or one that is for this client alone, as
		// a cookie or private says: ask for the whole. That goes through the router again, which must find its beginning.
		r = out.l.request(r.Context(), true)
		r.Header.Del("If-None-Match")
		r.Header.Del("If-Modified-Since")
		out.merges, out.old = false, nil
		out.w.reset()
		out.call(r)
	}
	returned = true
}

func (out *run) failed(r *http.Request, panicked any) {
	if err, ok := panicked.(error); panicked == nil || ok && errors.Is(err, http.ErrAbortHandler) {
		out.panicked = http.ErrAbortHandler // recoverers compare it. Or the handler ended its goroutine
		return
	}
	stack := debug.Stack()
	out.panicked = &PanicError{Value: panicked, Stack: stack}
	out.l.x.cache.logPanic(r.Context(), panicked, stack)
}

func (c *Cache) logPanic(ctx context.Context, panicked any, stack []byte) {
	c.cfg.Logger.ErrorContext(ctx, "middleware: handler panicked", "panic", panicked, "stack", string(stack))
}

func (out *run) call(r *http.Request) {
	out.began, out.asked = time.Now(), r
	out.l.x.next.ServeHTTP(out.w, r)
	out.w.finish()
	out.route = route(r)
}

// keep decides on the header of the response whether it is held back to be stored, or why not. It is called once.
func (out *run) keep(status int, h http.Header) (unfit string, explicit bool) {
	out.received = time.Now()
	switch {
	case status == http.StatusNotModified && out.old != nil:
		out.merges, out.w.discard = true, true
		return "", true
	case rules.IsFailure(status) && out.l.mayStandIn(out.old, out.received):
		out.standsIn, out.w.discard = true, true
		return "", true
	}
	out.terms = out.l.x.cache.cfg.rules.Assess(out.l.x.r, out.reply(status, h))
	switch unfit = out.terms.Unfit; {
	case unfit != "":
	case !record.Fits(h):
		unfit = tooLarge
	case declared(status, h) > int64(out.w.maxBody):
		unfit = out.slice(status, h)
	case out.l.x.r.Method == http.MethodHead && (status != http.StatusOK || !out.terms.Explicit):
		unfit = "method" // a router in front may have chosen this handler for HEAD, and it for others to be refused
	}
	return unfit, out.terms.Explicit
}

func (out *run) reply(status int, h http.Header) rules.Reply {
	return rules.Reply{Status: status, Header: h, Sent: out.began, Received: out.received}
}

// complete reports whether the handler wrote as much as it had said.
func (out *run) complete() bool {
	declared := out.w.sent.Get("Content-Length")
	return declared == "" || declared == strconv.Itoa(len(out.w.body))
}

// whole reports whether the response shows itself that it is complete.
func (out *run) whole() bool {
	return !out.w.open && out.panicked == nil && len(out.w.body) > 0 && out.w.sent.Get("Content-Length") != "" && out.complete()
}

// matches reports whether a 304 is about the record that was asked about: by its strong validator, or its weak one. (RFC 9111
// section 4.3.4. One without any is believed.)
func (out *run) matches() bool {
	etag, modified := out.w.sent.Get("Etag"), out.w.sent.Get("Last-Modified")
	switch {
	case strings.HasPrefix(etag, "W/"):
		return weak(etag) == weak(out.old.Get("Etag"))
	case etag != "":
		return etag == out.old.Get("Etag")
	}
	return modified == "" || modified == out.old.Get("Last-Modified")
}

// weak is an ETag as weak comparison has it (RFC 9110 section 8.8.3.2).
func weak(etag string) string { return strings.TrimPrefix(etag, "W/") }

// seat is the place of the request that a handler may run for: as long as it is there, a response that cannot be stored can be
// sent to it while it is written.
type seat struct {
	mu   sync.Mutex
	left bool
	run  *run
}

// take has the request wait for the run. It reports whether the request is there, and waits for no other.
func (s *seat) take(out *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left || s.run != nil {
		return false
	}
	s.run = out
	return true
}

// leave returns the run for the request when it is over; nil if there was none, and there will be none.
func (s *seat) leave() *run {
	s.mu.Lock()
	s.left = true
	out := s.run
	s.mu.Unlock()
	if out != nil {
		<-out.done
	}
	return out
}

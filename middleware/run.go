package middleware

import (
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
)

// run is a handler at work on a response that may be stored. Its fields are the handler's goroutine's until done is closed.
type run struct {
	*lookup
	old            *record // what the handler may say is still good; nil: there is nothing
	w              *recorder
	done           chan struct{}
	end            func() // ends the handler's context
	sent, received time.Time
	terms          terms
	route          string
	merges         bool // the handler said that the stale record is good
	standsIn       bool // the handler failed, and the stale record is served
	panicked       any

	rec     *record       // what is made of it
	keepFor time.Duration // how long that is to be kept

	kept atomic.Bool // set by the load: the response was to be stored
}

func newRun(l *lookup) *run {
	out := &run{lookup: l, old: l.usable(), done: make(chan struct{}), end: func() {}}
	out.w = newRecorder(l.w, l.cfg.MaxBody)
	out.w.keep = out.keep
	out.w.send = func(status int) { l.status(forwarded{why: l.why, status: status, detail: out.w.unfit}.String()) }
	return out
}

// serve calls the handler. A panic is left to who joins the run.
func (out *run) serve(r *http.Request) {
	defer close(out.done)
	returned := false
	defer func() {
		if p := recover(); !returned {
			out.failed(r, p)
		}
		out.end()
		out.rec, out.keepFor = out.outcome()
	}()
	out.call(r)
	if out.merges && !(out.matches() && out.merged().terms.unfit == "") {
		// A 304 about another response than the one we have (RFC 9111 section 4.3.4), or one that is for this client alone, as
		// a cookie or private says: ask for the whole. That goes through the router again, which must find its beginning.
		r = out.request(r.Context(), true)
		r.Header.Del("If-None-Match")
		r.Header.Del("If-Modified-Since")
		out.merges, out.old = false, nil
		out.w.reset()
		out.call(r)
	}
	returned = true
}

func (out *run) failed(r *http.Request, panicked any) {
	if out.panicked = panicked; panicked == nil {
		out.panicked = http.ErrAbortHandler // the handler ended its goroutine
	}
	if err, ok := out.panicked.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		out.cfg.Logger.ErrorContext(r.Context(), "middleware: handler panicked", "panic", panicked, "stack", string(debug.Stack()))
	}
}

func (out *run) call(r *http.Request) {
	out.sent = time.Now()
	out.next.ServeHTTP(out.w, r)
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
	case standsInFor[status] && out.mayStandIn(out.old, out.received):
		out.standsIn, out.w.discard = true, true
		return "", true
	}
	out.terms = out.cfg.judge(out.r, reply{status: status, header: h, sent: out.sent, received: out.received})
	declared, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if unfit = out.terms.unfit; unfit == "" && err == nil && declared > int64(out.w.maxBody) {
		unfit = tooLarge
	}
	return unfit, out.terms.explicit
}

// standsInFor has the status codes for which stale-if-error counts (RFC 5861 section 4).
var standsInFor = statusSet(500, 502, 503, 504)

// complete reports whether the handler wrote as much as it had said.
func (out *run) complete() bool {
	declared := out.w.sent.Get("Content-Length")
	return declared == "" || declared == strconv.Itoa(len(out.w.body))
}

// matches reports whether a 304 is about the record that was asked about: by its strong validator, or its weak one. (RFC 9111
// section 4.3.4. One without any is believed.)
func (out *run) matches() bool {
	etag, modified := out.w.sent.Get("Etag"), out.w.sent.Get("Last-Modified")
	switch {
	case strings.HasPrefix(etag, "W/"):
		return weak(etag) == weak(out.old.get("Etag"))
	case etag != "":
		return etag == out.old.get("Etag")
	}
	return modified == "" || modified == out.old.get("Last-Modified")
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

// route is the pattern of the route that answered, if the router tells it.
func route(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil {
		return c.RoutePattern()
	}
	return r.Pattern
}

// hopByHop are fields that are for one connection (RFC 9110 section 7.6.1), and proxies' own (RFC 9111 section 3.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// unstorable tells the fields that are not stored: those, what Connection lists, and what Cache-Control excepts.
func unstorable(h http.Header, without []string) func(name string) bool {
	listed := fieldList(h["Connection"])
	for i := range listed {
		listed[i] = http.CanonicalHeaderKey(listed[i])
	}
	return func(name string) bool {
		return name == "Content-Length" || slices.Contains(hopByHop, name) || slices.Contains(listed, name) ||
			slices.Contains(without, name)
	}
}

// trailers tells the fields that are sent after the body, in the two ways that net/http has.
func trailers(h http.Header) func(name string) bool {
	announced := fieldList(h["Trailer"])
	for i := range announced {
		announced[i] = http.CanonicalHeaderKey(announced[i])
	}
	return func(name string) bool {
		return strings.HasPrefix(name, http.TrailerPrefix) || slices.Contains(announced, name)
	}
}

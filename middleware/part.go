package middleware

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// refusal is why a handler's response is not the slice that it was asked for.
type refusal string

const (
	changed  = "changed"   // the page is another one by now
	noRanges = "no-ranges" // the page cannot be put together from the handler's responses
	failing  = "failing"   // the handler failed
)

// Error is part of error.
func (why refusal) Error() string { return "middleware: no slice of the page: " + string(why) }

// ask has the handler make the slice. What it answers else is not buffered.
func (s *slice) ask(ctx context.Context) (*record.Record, time.Duration) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := asking{slice: s, w: newRecorder(nil, s.length()), began: time.Now()}
	a.w.keep = a.keep
	a.w.leaves = func() bool {
		cancel(errUnheard)
		return false
	}
	whole := a.call(s.request(ctx))
	switch {
	case a.w.unfit == tooLarge: // it goes on after what it has announced
		return s.refuse(noRanges)
	case a.w.unfit != "":
		return s.refuse(a.w.unfit)
	case !whole || len(a.w.body) < s.length():
		return s.refuse(failing)
	}
	return &record.Record{
		Kind: record.Stored, Page: s.head.Parts, Location: s.head.Location, Status: http.StatusPartialContent, Received: a.received,
		Terms: a.terms.Terms, Header: []record.Pair{{Name: "Content-Range", Value: s.contentRange()}}, Body: a.w.body,
	}, a.lasts
}

// refuse is what those get who wait for a slice that there is not. It is not stored.
func (s *slice) refuse(why string) (*record.Record, time.Duration) {
	return &record.Record{
		Kind: record.Passed, Page: s.head.Parts, Location: s.head.Location, Received: time.Now(),
		Header: []record.Pair{{Name: whyField, Value: why}},
	}, 0
}

// request is what the handler is asked for. (With If-Match, caches between here and the origin would have to pass it on.)
func (s *slice) request(ctx context.Context) *http.Request {
	r := s.l.request(ctx, true)
	for _, name := range []string{"If-None-Match", "If-Modified-Since"} {
		r.Header.Del(name)
	}
	_, validator := strongValidator(s.head.Get, s.head.Received)
	r.Header.Set("If-Range", validator)
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", s.first, s.last))
	return r
}

// asking is a call of the handler for a slice.
type asking struct {
	slice           *slice
	w               *recorder
	began, received time.Time
	terms           rules.Assessment
	lasts           time.Duration
}

// call calls the handler, and reports whether it returned.
func (a *asking) call(r *http.Request) (returned bool) {
	defer func() {
		p := recover()
		if err, ok := p.(error); p != nil && a.w.unfit == "" && !(ok && err == http.ErrAbortHandler) { //nolint:errorlint // this very error
			a.slice.l.x.cache.logPanic(r.Context(), p, debug.Stack())
		}
	}()
	a.slice.l.x.next.ServeHTTP(a.w, r)
	a.w.finish()
	return true
}

// keep decides on the header of the response.
func (a *asking) keep(status int, h http.Header) (unfit string, explicit bool) {
	s := a.slice
	a.received = time.Now()
	if unfit = s.mistaken(status, h); unfit != "" {
		return unfit, true
	}
	head := updated(s.head, h, nil, a.received)
	settings := &s.l.x.cache.cfg.rules
	a.terms = settings.Assess(s.l.x.r, rules.Reply{Status: http.StatusOK, Header: head, Sent: a.began, Received: a.received})
	a.lasts = settings.Keep(&a.terms.Terms, head)
	if a.terms.Unfit != "" || !s.agrees(&a.terms.Terms, head) {
		return changed, true // the page may be as it is now; if not, it is not loaded anew a second time
	}
	a.w.body = make([]byte, 0, s.length())
	return "", true
}

// mistaken tells how a response differs from the slice that was asked for.
func (s *slice) mistaken(status int, h http.Header) string {
	name, ours := strongValidator(s.head.Get, s.head.Received)
	theirs, length := h.Get(name), declared(status, h)
	switch {
	case status == http.StatusRequestedRangeNotSatisfiable:
		return changed // it is shorter
	case status >= 400: // to this client, say, or to so many: the page may be as it was
		return failing
	case status != http.StatusOK && status != http.StatusPartialContent:
		return changed
	case theirs != "" && theirs != ours, length != 0 && length != s.head.Length:
		return changed
	case theirs == "", status == http.StatusOK, !s.isContentRange(h["Content-Range"]), !s.isContentLength(h["Content-Length"]),
		strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "multipart/byteranges"),
		h.Get("Content-Encoding") != s.head.Get("Content-Encoding") && h.Get("Content-Encoding") != "":
		return noRanges
	}
	return ""
}

func (s *slice) isContentRange(lines []string) bool {
	return len(lines) == 1 && strings.EqualFold(strings.TrimSpace(lines[0]), s.contentRange())
}

func (s *slice) isContentLength(lines []string) bool {
	return len(lines) == 0 || len(lines) == 1 && lines[0] == strconv.Itoa(s.length())
}

// agrees reports whether what a part says of its use is what the page says.
func (s *slice) agrees(terms *record.Terms, h http.Header) bool {
	page := &s.head.Terms
	return terms.NoCache == page.NoCache && terms.Strict == page.Strict && terms.NoStale == page.NoStale && terms.Shared == page.Shared &&
		slices.Equal(varyFields(h), namedFields(s.head))
}

package sliced

import (
	"context"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// asking is one call of the handler for a slice.
type asking struct {
	slice           *slice
	w               *writer.Recorder
	began, received time.Time
	assessed        rules.Assessment
	keep            time.Duration
}

// ask lets the handler make the slice. Any other answer is not buffered.
func (s *slice) ask(ctx context.Context) (*record.Record, time.Duration) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	page := s.page
	a := asking{slice: s, w: writer.NewRecorder(nil, nil, page.Front, s.length()), began: page.Store.Clock.Now()}
	a.w.Decide = a.decide
	a.w.Leaving = func() bool {
		cancel(writer.ErrUnheard)
		return false
	}
	returned := a.call(s.request(ctx))
	switch {
	case a.w.Unfit == writer.TooLarge: // there is more than it announced
		return s.refuse(NoRanges)
	case a.w.Unfit != "" && a.w.Unfit != writer.Incomplete:
		return s.refuse(Refusal(a.w.Unfit))
	case !returned || len(a.w.Body) < s.length():
		return s.refuse(Failing)
	}
	rec := s.record(record.Stored, http.StatusPartialContent, a.received)
	rec.Terms, rec.Body = a.assessed.Terms, a.w.Body
	rec.Header = []record.Pair{{Name: "Content-Range", Value: s.contentRange()}}
	return rec, a.keep
}

// call calls the handler, and reports whether it returned.
func (a *asking) call(r *http.Request) (returned bool) {
	defer func() {
		p := recover()
		if err, ok := p.(error); p != nil && a.w.Unfit == "" && !(ok && err == http.ErrAbortHandler) { //nolint:errorlint // this very error
			a.slice.page.Store.LogPanic(r.Context(), r.URL.Path, p, debug.Stack())
		}
	}()
	a.slice.page.Handler.ServeHTTP(a.w, r)
	a.w.Finish()
	return true
}

// decide reports whether the response is the slice, once its header is known.
func (a *asking) decide(status int, h http.Header) writer.Decision {
	s, page := a.slice, a.slice.page
	a.received = page.Store.Clock.Now()
	page.Store.Rules.Correct(page.Client, h)
	if refusal := s.mismatch(status, h); refusal != "" {
		return writer.Decision{Unfit: string(refusal), Explicit: true}
	}
	own, _ := writer.Own(page.Front, h)
	head := writer.Final(page.Front, page.Head, rules.Updated(page.Head, own, nil, a.received))
	a.assessed = page.Store.Rules.Assess(page.Client, rules.Reply{Status: http.StatusOK, Header: head, Front: page.Front, Sent: a.began, Received: a.received})
	a.keep = page.Store.Rules.Keep(&a.assessed.Terms, head)
	if a.assessed.Unfit != "" || !s.agrees(&a.assessed.Terms, head) {
		// The page may be like this now. If it is not, it is not loaded a second time.
		return writer.Decision{Unfit: string(Changed), Explicit: true}
	}
	return writer.Decision{Explicit: true, Size: s.length()}
}

// validator is the strong validator of the page.
func (s *slice) validator() (name, value string) {
	return rules.StrongValidator(s.page.Head.Get, s.page.Head.Received)
}

// mismatch says how a response differs from the slice that was asked for; empty: it does not.
func (s *slice) mismatch(status int, h http.Header) Refusal {
	name, ours := s.validator()
	theirs, size, encoding := h.Get(name), rules.DeclaredSize(status, h), h.Get("Content-Encoding")
	switch {
	case status == http.StatusRequestedRangeNotSatisfiable:
		return Changed // it is shorter
	case status >= 400: // perhaps for this client only, or for lack of capacity: the page may be as it was
		return Failing
	case status != http.StatusOK && status != http.StatusPartialContent:
		return Changed
	case theirs != "" && theirs != ours, size != 0 && size != s.page.Head.Length:
		return Changed
	case theirs == "", status == http.StatusOK, !s.isContentRange(h["Content-Range"]), !s.isContentLength(h["Content-Length"]),
		strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "multipart/byteranges"),
		encoding != "" && encoding != s.page.Head.Get("Content-Encoding"):
		return NoRanges
	}
	return ""
}

func (s *slice) isContentRange(lines []string) bool {
	return len(lines) == 1 && strings.EqualFold(strings.TrimSpace(lines[0]), s.contentRange())
}

func (s *slice) isContentLength(lines []string) bool {
	return len(lines) == 0 || len(lines) == 1 && lines[0] == strconv.Itoa(s.length())
}

// agrees reports whether a slice has the page's terms of reuse.
func (s *slice) agrees(terms *record.Terms, h http.Header) bool {
	page := &s.page.Head.Terms
	return terms.NoCache == page.NoCache && terms.Strict == page.Strict && terms.NoStale == page.NoStale && terms.Shared == page.Shared &&
		slices.Equal(canonical.VaryFields(h, s.page.Front), canonical.NamedFields(s.page.Head))
}

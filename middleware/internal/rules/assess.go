package rules

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/record"
)

// MaxTags bounds the tags of a response that is stored.
const MaxTags = 128

// maxHeuristic bounds heuristic lifetimes (RFC 9111 section 4.2.2).
const maxHeuristic = 24 * time.Hour

// defaultShare is Heuristic where a response, or its status, leaves no doubt that everybody may have it.
const defaultShare = 0.1

// defaultStaleIfError is StaleIfError of responses that are fresh when they come.
const defaultStaleIfError = 10 * time.Second

// LongestError is how long most errors are kept at most if StoreErrors says nothing, and what is fresh by defaultShare.
const LongestError = 10 * time.Second

// Settings decide what may be stored, and for how long. The Config of package middleware documents them.
type Settings struct {
	DefaultTTL, KeepFor, StaleIfError time.Duration
	StaleWhile                        time.Duration         // stale-while-revalidate of responses that are fresh when they come
	Heuristic                         float64               // 0: see defaultShare
	StatusTTL                         map[int]time.Duration // instead of DefaultTTL
	StoreErrors                       map[int]time.Duration // which, and for how long at most; nil: see LongestError
	StoreSetCookie                    bool
	Override                          func(*http.Request, http.Header) // nil: none
	Targets                           []string                         // response fields that count before Cache-Control
}

// Reply is a response as the handler made it.
type Reply struct {
	Status   int
	Header   http.Header
	Front    http.Header // what of it was set in front of the cache: its cookies are the client's own
	Sent     time.Time   // when the handler was called
	Received time.Time
}

// Assessment says whether a response may be stored, and how it may be reused.
type Assessment struct {
	record.Terms
	Unfit   string   // why it may not be stored, a word for Cache-Status; empty: it may
	Without []string // fields that must not be stored
}

// Assess decides whether a response may be stored, and how long it is fresh (RFC 9111 sections 3 and 4.2). A response whose freshness
// information is contradictory or unparsable is treated as stale (section 4.2.1).
func (s *Settings) Assess(r *http.Request, a Reply) Assessment {
	d, isTargeted := s.directives(a.Header)
	t := record.Terms{
		NoCache: d.NoCache, Strict: d.MustRevalidate || d.ProxyRevalidate, NoStale: d.SMaxAge.Given,
		Shared: d.Public || d.SMaxAge.Given || d.Shares,
		SWR:    d.StaleWhileRevalidate.Duration, SIE: d.StaleIfError.Duration,
		Age: a.age(),
	}
	t.Lifetime, t.Explicit = lifetime(a, &d, isTargeted)
	if !t.Explicit {
		t.Lifetime = s.implied(r, a, &d)
	}
	if t.MayBeStale() {
		s.extend(&t, &d)
	}
	if d.Malformed {
		t.Lifetime, t.SWR, t.SIE, t.Strict = 0, 0, 0, true
	}
	out := Assessment{Terms: t, Without: d.Without}
	if a.Status >= 400 {
		s.limitError(a.Status, &out)
	}
	if out.Unfit == "" {
		out.Unfit = s.whyNot(r, a, &d, &out)
	}
	return out
}

// extend is how long a response may be served stale if it does not say so.
func (s *Settings) extend(t *record.Terms, d *Directives) {
	cameFresh := t.Lifetime > t.Age
	switch {
	case d.StaleIfError.Given:
	case s.StaleIfError != 0:
		t.SIE = max(s.StaleIfError, 0)
	case cameFresh:
		t.SIE = defaultStaleIfError
	}
	if !d.StaleWhileRevalidate.Given && cameFresh {
		t.SWR = s.StaleWhile
	}
}

func (s *Settings) directives(h http.Header) (d Directives, isTargeted bool) {
	if d, isTargeted = targeted(h, s.Targets); !isTargeted {
		d = Parse(h.Values("Cache-Control"))
	}
	return d, isTargeted
}

// Forbids reports whether a header says that nobody else may have the response.
func (s *Settings) Forbids(h http.Header) bool {
	d, _ := s.directives(h)
	return d.Private || d.NoStore && !d.Understands
}

// Correct lets Override correct a header.
func (s *Settings) Correct(r *http.Request, h http.Header) {
	if s.Override != nil {
		s.Override(r, h)
	}
}

// lifetime is how long the response says it is fresh, and whether it says so. An unparsable Expires counts as 0.
func lifetime(a Reply, d *Directives, isTargeted bool) (time.Duration, bool) {
	switch {
	case d.SMaxAge.Given:
		return d.SMaxAge.Duration, true
	case d.MaxAge.Given:
		return d.MaxAge.Duration, true
	case !isTargeted && len(a.Header.Values("Expires")) > 0:
		expires, ok := date(a.Header, "Expires")
		if !ok {
			return 0, true
		}
		sent, ok := date(a.Header, "Date")
		if !ok {
			sent = a.Received // RFC 9110 section 6.6.1
		}
		return min(expires.Sub(sent), Longest), true
	}
	return 0, d.Malformed
}

// limitError bounds how long an error is kept, whatever it says. Many handlers say how long their page lives before they fail to make it:
// by default, only what is likely to last is kept for as long as it says.
func (s *Settings) limitError(status int, out *Assessment) {
	longest, listed := s.StoreErrors[status]
	if s.StoreErrors == nil {
		if _, named := s.StatusTTL[status]; named || heuristic[status] {
			return
		}
		longest, listed = LongestError, true
	}
	if !listed {
		out.Unfit = "status"
	}
	out.Lifetime, out.SWR, out.SIE = min(out.Lifetime, record.Plus(out.Age, longest)), 0, 0
}

// implied is the lifetime of a response that does not state one.
func (s *Settings) implied(r *http.Request, a Reply, d *Directives) time.Duration {
	ttl, named := s.StoreErrors[a.Status]
	if a.Status < 400 || !named {
		ttl, named = s.StatusTTL[a.Status]
	}
	if !named && !heuristic[a.Status] && !d.Public || d.NoCache || credentials(r) || streams(a.Header) {
		return 0
	}
	if named {
		return max(ttl, 0)
	}
	if s.DefaultTTL > 0 {
		return s.DefaultTTL
	}
	modified, ok := date(a.Header, "Last-Modified")
	share, longest := s.Heuristic, maxHeuristic
	if share == 0 && (d.Public || fixed[a.Status] && !namesMethod(r.Header)) {
		share, longest = defaultShare, LongestError
	}
	if share <= 0 || !ok || !modified.Before(a.Received) {
		return 0
	}
	known := min(a.Received.Sub(modified), Longest) // so that the product is a duration
	return min(time.Duration(share*float64(known)), longest)
}

// namesMethod reports whether a field of a request is the name of a method: a framework may take the request for one with that method, and
// refuse it.
func namesMethod(h http.Header) bool {
	for _, lines := range h {
		if slices.ContainsFunc(lines, func(line string) bool { return methods[strings.ToUpper(strings.Trim(line, " \t"))] }) {
			return true
		}
	}
	return false
}

// credentials reports whether a request identifies its user.
func credentials(r *http.Request) bool {
	return len(r.Header["Authorization"]) > 0 || len(r.Header["Cookie"]) > 0
}

// streams reports whether a client is meant to read the response while it is written.
func streams(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// Why a response may not be stored, whether the field is in its header or in its trailer.
const (
	badField  = "field" // it has a line break, for example
	setCookie = "set-cookie"
)

// whyNot returns why a response may not be stored (RFC 9111 section 3), or need not be, because it could never be used; empty:
// store it.
func (s *Settings) whyNot(r *http.Request, a Reply, d *Directives, out *Assessment) string {
	switch {
	case a.Status < 200, a.Status > 999, a.Status == http.StatusPartialContent, a.Status == http.StatusNotModified,
		d.MustUnderstand && !understood[a.Status]:
		return "status"
	case d.NoStore && !d.Understands:
		return "no-store"
	case d.Private:
		return "private"
	case len(r.Header["Authorization"]) > 0 && !out.Shared:
		return "authorization"
	case slices.ContainsFunc(a.Header["Set-Cookie"], func(c string) bool { return !slices.Contains(a.Front["Set-Cookie"], c) }) && !s.StoreSetCookie && !slices.Contains(out.Without, "Set-Cookie"):
		return setCookie
	case slices.ContainsFunc(List(a.Header["Vary"]), func(name string) bool { return name == "*" || !record.IsToken(name) }):
		return "vary"
	case !record.Clean(record.Pairs(a.Header, Trailers(a.Header))):
		return badField
	case len(Tags(a.Header))+len(Groups(a.Header[CacheGroups])) > MaxTags:
		return "tags"
	case s.Keep(&out.Terms, a.Header) > 0:
		return ""
	case out.Explicit || d.NoCache:
		return "stale"
	}
	return "no-lifetime"
}

// Keep is how long a response may be of use from its receipt on: while it is fresh, may be served stale, or may be validated.
func (s *Settings) Keep(t *record.Terms, h http.Header) time.Duration {
	fresh := t.Lifetime
	if t.NoCache {
		fresh = t.Age
	}
	after := time.Duration(0)
	if !t.Strict && !t.NoCache {
		after = max(t.SWR, t.SIE)
	}
	if h.Get("ETag") != "" || h.Get("Last-Modified") != "" {
		after = max(after, s.KeepFor)
	}
	return record.Plus(min(record.Plus(fresh, -t.Age), Longest), after)
}

// Remaining is how long a stored record may still be of use.
func (s *Settings) Remaining(rec *record.Record, now time.Time) time.Duration {
	return record.Plus(s.Keep(&rec.Terms, rec.HTTPHeader()), -now.Sub(rec.Received))
}

// age is corrected_initial_age of RFC 9111 section 4.2.3. The first member of an Age field counts; an unparsable one is ignored
// (section 5.1).
func (a Reply) age() time.Duration {
	apparent := time.Duration(0)
	if sent, ok := date(a.Header, "Date"); ok {
		apparent = max(0, a.Received.Sub(sent).Truncate(time.Second))
	}
	first, _, _ := strings.Cut(a.Header.Get("Age"), ",")
	age, _ := parseSeconds(strings.TrimSpace(first))
	if age == Longest {
		age = math.MaxInt64 // or more: it is stale, however long the response says that it is fresh
	}
	return max(apparent, record.Plus(age, a.Received.Sub(a.Sent)))
}

package middleware

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// terms are what a response's header says about keeping it.
type terms struct {
	unfit    string        // why it is not to be stored, a word for Cache-Status; empty: it is
	explicit bool          // the response itself says how long it is fresh
	lifetime time.Duration // how long it is fresh, counted from its age 0
	age      time.Duration // when it was received: corrected_initial_age of RFC 9111 section 4.2.3
	noCache  bool          // to be validated before each use
	strict   bool          // must-revalidate or proxy-revalidate: never served stale
	noStale  bool          // s-maxage: served stale only as the response says itself
	shared   bool          // public, s-maxage or must-revalidate: also for requests with Authorization
	swr, sie time.Duration // stale-while-revalidate and stale-if-error
	without  []string      // fields that are not to be stored
}

// reply is a response as the handler made it.
type reply struct {
	status   int
	header   http.Header
	sent     time.Time // when the handler was called
	received time.Time
}

// judge decides whether and how a response may be kept (RFC 9111 sections 3 and 4.2).
func (c *Config) judge(r *http.Request, a reply) terms {
	d, isTargeted := targeted(a.header, c.targets)
	if !isTargeted {
		d = parseDirectives(a.header.Values("Cache-Control"))
	}
	t := terms{
		noCache: d.noCache, strict: d.mustRevalidate || d.proxyRevalidate, noStale: d.sMaxAge.given,
		shared: d.public || d.sMaxAge.given || d.mustRevalidate,
		swr:    d.staleWhileRevalidate.Duration, sie: d.staleIfError.Duration,
		without: d.without, age: a.age(),
	}
	t.lifetime, t.explicit = lifetime(a, &d, isTargeted)
	if !t.explicit {
		t.lifetime = c.implied(r, a, &d)
	}
	if d.malformed {
		t.lifetime, t.swr, t.sie, t.strict = 0, 0, 0, true
	}
	t.unfit = c.whyNot(r, a, &d, &t)
	return t
}

// lifetime is what the response says about how long it is fresh. What cannot be read says 0.
func lifetime(a reply, d *directives, isTargeted bool) (time.Duration, bool) {
	switch date, dateOK := httpDate(a.header, "Date"); {
	case !dateOK:
		return 0, true
	case d.sMaxAge.given:
		return d.sMaxAge.Duration, true
	case d.maxAge.given:
		return d.maxAge.Duration, true
	case !isTargeted && len(a.header.Values("Expires")) > 0:
		expires, ok := httpDate(a.header, "Expires")
		if date.IsZero() {
			date = a.received
		}
		if !ok || expires.Before(date) {
			return 0, true
		}
		return expires.Sub(date), true
	}
	return 0, d.malformed
}

// implied is how long a response is fresh that says nothing about that.
func (c *Config) implied(r *http.Request, a reply, d *directives) time.Duration {
	if !heuristic[a.status] || d.noCache || credentials(r) || streams(a.header) {
		return 0
	}
	if c.DefaultTTL > 0 {
		return c.DefaultTTL
	}
	modified, ok := httpDate(a.header, "Last-Modified")
	if c.Heuristic <= 0 || !ok || modified.IsZero() || !modified.Before(a.received) {
		return 0
	}
	return min(time.Duration(c.Heuristic*float64(a.received.Sub(modified))), maxHeuristic)
}

// maxHeuristic bounds guesses, as RFC 9111 section 4.2.2 has it in mind.
const maxHeuristic = 24 * time.Hour

// credentials reports whether a request tells who asks.
func credentials(r *http.Request) bool {
	return len(r.Header["Authorization"]) > 0 || len(r.Header["Cookie"]) > 0
}

// streams reports whether a response is made to be read while it is written.
func streams(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// whyNot is section 3 of RFC 9111, and what is not worth being stored, as it could never be used.
func (c *Config) whyNot(r *http.Request, a reply, d *directives, t *terms) string {
	switch {
	case r.Method != http.MethodGet:
		return "method"
	case a.status < 200, a.status == http.StatusPartialContent, a.status == http.StatusNotModified,
		d.mustUnderstand && !understood[a.status]:
		return "status"
	case d.noStore && !d.mustUnderstand:
		return "no-store"
	case d.private:
		return "private"
	case len(r.Header["Authorization"]) > 0 && !t.shared:
		return "authorization"
	case len(a.header["Set-Cookie"]) > 0 && !c.StoreSetCookie && !slices.Contains(t.without, "Set-Cookie"):
		return "set-cookie"
	case slices.Contains(fieldList(a.header["Vary"]), "*"):
		return "vary"
	case len(tags(a.header)) > maxTags:
		return "tags"
	case t.keep(c, a.header) > 0:
		return ""
	case t.explicit || d.noCache:
		return "stale"
	}
	return "no-lifetime"
}

// keep is how long from now on the response may be of use: fresh, stale, or to be validated.
func (t *terms) keep(c *Config, h http.Header) time.Duration {
	fresh := t.lifetime
	if t.noCache {
		fresh = t.age
	}
	after := time.Duration(0)
	if !t.strict && !t.noCache {
		after = max(t.swr, t.sie)
	}
	if h.Get("ETag") != "" || h.Get("Last-Modified") != "" {
		after = max(after, c.KeepFor)
	}
	return min(fresh-t.age, longest) + after
}

// age is corrected_initial_age of RFC 9111 section 4.2.3. Of an Age with several members the first counts, and one that
// cannot be read is ignored (section 5.1).
func (a reply) age() time.Duration {
	apparent := time.Duration(0)
	if date, ok := httpDate(a.header, "Date"); ok && !date.IsZero() {
		apparent = max(0, a.received.Sub(date).Truncate(time.Second))
	}
	first, _, _ := strings.Cut(a.header.Get("Age"), ",")
	age, _ := parseSeconds(strings.TrimSpace(first))
	return max(apparent, age+a.received.Sub(a.sent))
}

// httpDate reads a date. A field that is not there is the zero time; one that is there twice or cannot be read is not ok.
func httpDate(h http.Header, field string) (time.Time, bool) {
	lines := h.Values(field)
	if len(lines) == 0 {
		return time.Time{}, true
	}
	t, err := http.ParseTime(lines[0])
	return t, err == nil && len(lines) == 1
}

// heuristic has the status codes whose responses may be fresh without saying so (RFC 9110 section 15.1), but for 206.
var heuristic = statusSet(200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501)

// understood has the status codes whose rules about caching this cache follows: those of RFC 9110.
var understood = statusSet(200, 201, 202, 203, 204, 205, 300, 301, 302, 303, 305, 307, 308, 400, 401, 402, 403, 404, 405,
	406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 500, 501, 502, 503, 504, 505)

func statusSet(codes ...int) map[int]bool {
	set := make(map[int]bool, len(codes))
	for _, code := range codes {
		set[code] = true
	}
	return set
}

// fieldList is the members of a list of tokens.
func fieldList(lines []string) (members []string) {
	for _, line := range lines {
		for member := range strings.SplitSeq(line, ",") {
			if member = strings.Trim(member, " \t"); member != "" {
				members = append(members, member)
			}
		}
	}
	return members
}

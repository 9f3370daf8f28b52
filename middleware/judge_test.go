package middleware

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The judge of FuzzTheJudge knows RFC 9111 and nothing of the cache. It is told what the origin said, and decides whether a response may
// answer a request that did not cause it.

// said is what the origin says in all its responses of a scenario.
type said struct {
	maxAge, sMaxAge string // "": none
	flags           []string
	swr, sie        bool // for 600 seconds
	expires, date   moment
	age             string
	vary            string
	etag            string // s: strong, w: weak
	modified        bool
	cookie          bool
}

// moment is a date as a field has it, and what it means: nothing, if it is no date.
type moment struct {
	text string
	at   time.Time
	ok   bool
}

func at(text string, year int) moment {
	return moment{text: text, at: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), ok: true}
}

var (
	ages     = []string{"", "60", "0", "2147483648", "99999999999999999999", "x", "\"60\"", "-1"}
	shared60 = []string{"", "", "", "60", "0", "4294967296"}
	aged     = []string{"", "", "", "70", "2147483648", "99999999999999999999999", "-1", "x", "0, 70", "70, 0"}
	flags    = []string{"no-store", "private", "no-cache", "must-revalidate", "proxy-revalidate", "public"}
	varies   = []string{"", "", "", "X-A", "*"}
	moments  = []moment{
		{}, {}, {}, at("Thu, 01 Jan 1970 00:00:00 GMT", 1970), at("Fri, 01 Jan 9999 00:00:00 GMT", 9999), at("Mon, 01 Jan 0001 00:00:00 GMT", 1),
		at("Saturday, 01-Jan-94 00:00:00 GMT", 1994), at("Thu Jan  1 00:00:00 1970", 1970), {text: "0"}, {text: "Thu, 01 Jan 1970"}, {text: "-1"},
		{text: "Fri, 31 Feb 2199 00:00:00 GMT"}, {text: "Fri, 01 Jan 10000 00:00:00 GMT"},
	}
)

// chooser takes choices from the bits of a number.
type chooser uint64

func (c *chooser) of(n int) int {
	i := int(uint64(*c) % uint64(n))
	*c /= chooser(n)
	return i
}

func newSaid(bits uint64) (s said) {
	c := chooser(bits)
	s.maxAge, s.sMaxAge, s.age, s.vary = ages[c.of(len(ages))], shared60[c.of(len(shared60))], aged[c.of(len(aged))], varies[c.of(len(varies))]
	s.expires, s.date = moments[c.of(len(moments))], moments[c.of(len(moments))]
	for _, flag := range flags {
		if c.of(4) == 0 {
			s.flags = append(s.flags, flag)
		}
	}
	s.swr, s.sie, s.modified, s.cookie = c.of(4) == 1, c.of(4) == 1, c.of(2) == 1, c.of(8) == 1
	s.etag = []string{"", "s", "s", "w"}[c.of(4)]
	return s
}

// header is what the origin says, for a version of its page.
func (s *said) header(version int) map[string]string {
	var control []string
	if s.maxAge != "" {
		control = append(control, "max-age="+s.maxAge)
	}
	if s.sMaxAge != "" {
		control = append(control, "s-maxage="+s.sMaxAge)
	}
	control = append(control, s.flags...)
	if s.swr {
		control = append(control, "stale-while-revalidate=600")
	}
	if s.sie {
		control = append(control, "stale-if-error=600")
	}
	h := map[string]string{
		"Cache-Control": strings.Join(control, ", "), "Expires": s.expires.text, "Date": s.date.text, "Age": s.age, "Vary": s.vary,
	}
	switch s.etag {
	case "s":
		h["Etag"] = `"` + strconv.Itoa(version) + `"`
	case "w":
		h["Etag"] = `W/"` + strconv.Itoa(version) + `"`
	}
	if s.modified {
		h["Last-Modified"] = time.Date(2020, 1, 1+version, 0, 0, 0, 0, time.UTC).Format("Mon, 02 Jan 2006 15:04:05") + " GMT"
	}
	if s.cookie {
		h["Set-Cookie"] = "a=b"
	}
	return h
}

func (s *said) has(flag string) bool { return slices.Contains(s.flags, flag) }

// seconds reads delta-seconds (section 1.2.2): what is too large counts as 2^31.
func deltaSeconds(text string) (n float64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + float64(c-'0')
	}
	return min(n, 1<<31), text != ""
}

// left is how long a response is still fresh when it comes, in seconds (sections 4.2.1 and 4.2.3). A response with an unreadable lifetime is stale.
func (s *said) left(now time.Time) float64 {
	span := func(a, b time.Time) float64 { return float64(a.Unix()) - float64(b.Unix()) } // a Duration is too short
	age := 0.0
	if s.date.ok {
		age = max(0, span(now, s.date.at))
	}
	first, _, _ := strings.Cut(s.age, ",")
	if n, ok := deltaSeconds(first); ok {
		age = max(age, n)
	}
	for _, text := range []string{s.sMaxAge, s.maxAge} {
		if text != "" {
			n, ok := deltaSeconds(strings.Trim(text, `"`))
			if !ok {
				return math.Inf(-1)
			}
			return n - age
		}
	}
	switch {
	case s.expires.text == "" && s.modified && s.has("public"): // section 4.2.2: a tenth of some years, and ten seconds at most (doc.go)
		return 10 - age
	case !s.expires.ok: // section 5.3: what is no date has just passed
		return -age
	case s.date.ok:
		return span(s.expires.at, s.date.at) - age
	}
	return span(s.expires.at, now) - age
}

// ask is a request.
type ask struct {
	control      string // Cache-Control
	x            string // X-A, which Vary may name
	rng          string // Range
	ifNone       string // If-None-Match
	authorized   bool
	onlyIfCached bool
}

var (
	controls = []string{"", "", "", "", "no-cache", "no-store", "max-age=0", "max-stale", "min-fresh=600", "max-age=600"}
	ranges   = []string{"", "", "", "bytes=0-9", "bytes=50-", "bytes=-7", "bytes=95-200", "bytes=200-", "bytes=31-32", "bytes=1-2,5-6", "bytes=x"}
	nones    = []string{"", "", "", "", `"1"`, `W/"2"`, "*"}
)

func newAsk(c *chooser) ask {
	return ask{
		control: controls[c.of(len(controls))], x: []string{"", "", "1", "2"}[c.of(4)], rng: ranges[c.of(len(ranges))],
		ifNone: nones[c.of(len(nones))], authorized: c.of(6) == 1, onlyIfCached: c.of(8) == 1,
	}
}

// mayShare says why the response to one request must not answer another (section 3, and section 4 but for freshness); empty: it may.
func (s *said) mayShare(cause, q ask) string {
	switch {
	case s.has("no-store"), s.has("private"):
		return "3: it must not be stored"
	case cause.control == "no-store":
		return "3: the request forbade to store it"
	case q.control == "no-store" && !q.onlyIfCached: // what is stored already may be sent
		return "5.2.1.5: the request is not for caches"
	case (cause.authorized || q.authorized) && cause.authorized != q.authorized && !s.has("public") && !s.has("must-revalidate") && s.sMaxAge == "":
		return "3.5: it is for the authorized client"
	case cause.authorized && !s.has("public") && !s.has("must-revalidate") && s.sMaxAge == "":
		return "3.5: it must not be stored"
	case s.vary == "*", s.vary == "X-A" && cause.x != q.x:
		return "4.1: Vary"
	case s.cookie:
		return "a cookie for one"
	}
	return ""
}

// mayReuse says why a response that came before the request must not answer it without asking the origin; empty: it may.
func (s *said) mayReuse(q ask, left float64, failing bool) string {
	strict := s.has("must-revalidate") || s.has("proxy-revalidate")
	switch {
	case s.has("no-cache"):
		return "5.2.2.4: no-cache"
	case left > 0:
		switch {
		case failing:
			return "" // section 4.3.3: it stands in, and is not even stale
		case q.control == "no-cache", q.control == "max-age=0":
			return "5.2.1.4, 5.2.1.1: the request wants a fresh answer"
		case q.control == "min-fresh=600" && left < 600:
			return "5.2.1.3: min-fresh"
		}
		return ""
	case strict:
		return "4.2.4: it must not be served stale"
	case s.swr && -left < 600, failing && s.sie && -left < 600:
		return ""
	case q.control == "max-stale" && s.sMaxAge == "":
		return ""
	}
	return "4: it is stale"
}

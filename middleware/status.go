package middleware

import (
	"strconv"
	"strings"
	"time"
)

// Result says how a request was answered.
type Result string

// The results. The words are those of cacheguard.Outcome where they mean the same.
const (
	Hit      Result = "hit"      // from the cache, fresh
	Stale    Result = "stale"    // from the cache, stale; it is made anew in the background, or cannot be for now
	Loaded   Result = "loaded"   // by the handler, or with its word that the stored response is good
	Shared   Result = "shared"   // with what the handler made for another request, here or on another instance
	Bypassed Result = "bypassed" // by the handler, because Redis is unavailable; shared by requests to this instance
	Passed   Result = "passed"   // by the handler, for this request alone: the response or the request is not for caches
	Failed   Result = "failed"   // not at all, or with an error of the cache's own
)

// Response is what a request came to.
type Response struct {
	Result Result
	Status int           // 0: none was sent
	Route  string        // pattern of the route that answered, if the router tells (chi and http.ServeMux do); of a hit, that which made it
	Took   time.Duration // until the response was sent, or the client had left
}

// report tells Config.OnResponse. It runs when the handler panics too.
func (x *exchange) report() {
	x.res.Took = time.Since(x.began)
	if x.res.Result == "" {
		x.res.Result = Failed
	}
	x.cache.cfg.OnResponse(x.r, x.res)
}

// status adds this cache's member, with the parameters, to Cache-Status.
func (x *exchange) status(params string) { x.addStatus(x.cache.cfg.Name + params) }

// addStatus adds a member to Cache-Status (RFC 9211), after those of caches behind it.
func (x *exchange) addStatus(member string) {
	h := x.w.Header()
	if x.cache.cfg.KeyInStatus {
		member += "; key=" + sfString(x.cache.cfg.placeOf(x.r).location())
	}
	if before := h["Cache-Status"]; len(before) > 0 {
		member = strings.Join(before, ", ") + ", " + member
	}
	h["Cache-Status"] = x.line(statusLine, member)
}

// sfString is a String of Structured Fields. What may not be in one is left out.
func sfString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= ' ' && c < 127:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// forwarded are the parameters of a response that the handler was asked for.
type forwarded struct {
	why       string
	status    int // of the handler's response; 0: not said
	stored    bool
	collapsed bool
	ttl       time.Duration
	hasTTL    bool
	detail    string
}

func (f forwarded) String() string {
	s := "; fwd=" + f.why
	if f.status != 0 {
		s += "; fwd-status=" + strconv.Itoa(f.status)
	}
	if f.hasTTL {
		s += string(appendTTL(nil, f.ttl))
	}
	if f.stored {
		s += "; stored"
	}
	if f.collapsed {
		s += "; collapsed"
	}
	if f.detail != "" {
		s += detailed(f.detail)
	}
	return s
}

func fwd(why string) string         { return forwarded{why: why}.String() }
func detailed(detail string) string { return "; detail=" + detail }

func appendTTL(b []byte, d time.Duration) []byte {
	seconds := d / time.Second
	if d < 0 && d%time.Second != 0 {
		seconds-- // a response that has just become stale is not fresh
	}
	return strconv.AppendInt(append(b, "; ttl="...), int64(seconds), 10)
}

// describe is the member of Cache-Status for a stored response.
func (x *exchange) describe(l *lookup, got fetched, now time.Time) string {
	left := got.rec.Fresh(now)
	f := forwarded{why: l.why, ttl: left, hasTTL: true}
	switch own := got.own; {
	case own != nil:
		f.status, f.stored = own.w.status, own.kept.Load()
		if got.result() == Bypassed {
			f.stored, f.detail = false, "redis"
		}
	case got.result() == Shared || got.result() == Loaded:
		f.collapsed = true
	case got.result() == Bypassed:
		f.collapsed, f.detail = true, "redis"
	default:
		var room [64]byte
		member := append(append(room[:0], x.cache.cfg.Name...), "; hit"...)
		return string(appendTTL(member, left))
	}
	return x.cache.cfg.Name + f.String()
}

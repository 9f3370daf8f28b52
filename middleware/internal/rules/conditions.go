package rules

import (
	"net/http"
	"strings"
	"time"
)

// DropConditions removes the conditions from the header of a request.
func DropConditions(h http.Header) {
	h.Del("If-None-Match")
	h.Del("If-Modified-Since")
}

// Unchanged reports whether the client already has the response with these fields, according to the condition that it sent (RFC 9110
// section 13.2).
func Unchanged(r *http.Request, get func(name string) string) bool {
	if lines := r.Header["If-None-Match"]; len(lines) > 0 {
		return listsETag(lines, get("Etag"))
	}
	lines := r.Header["If-Modified-Since"]
	if len(lines) != 1 {
		return false
	}
	since, ok := ParseDate(lines[0], time.Now())
	if !ok {
		return false
	}
	modified := get("Last-Modified")
	if modified == "" {
		modified = get("Date") // RFC 9111 section 4.3.2
	}
	at, ok := ParseDate(modified, time.Now())
	return ok && !at.After(since)
}

// listsETag reports whether a list of ETags has this one, by weak comparison. One that is too long has none: a whole response is right.
func listsETag(lines []string, etag string) bool {
	if IsLong(lines) {
		return false
	}
	list := strings.Join(lines, ",")
	if strings.TrimSpace(list) == "*" {
		return true
	}
	parts := strings.Split(list, `"`)
	for i := 1; i+1 < len(parts); i += 2 {
		if between := strings.TrimLeft(parts[i-1], " \t,"); between != "" && between != "W/" {
			return false // not a list of ETags from here on
		}
		if weak(etag) == `"`+parts[i]+`"` {
			return true
		}
	}
	return false
}

// weak is an ETag as weak comparison sees it (RFC 9110 section 8.8.3.2).
func weak(etag string) string { return strings.TrimPrefix(etag, "W/") }

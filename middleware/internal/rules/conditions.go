package rules

import (
	"net/http"
	"strings"
	"time"
)

// Conditional reports whether a request has a condition that a cache may evaluate.
func Conditional(r *http.Request) bool {
	return len(r.Header["If-None-Match"])+len(r.Header["If-Modified-Since"]) > 0
}

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
	for list != "" {
		list = strings.TrimLeft(list, " \t,")
		prefix := ""
		if strings.HasPrefix(list, "W/") {
			prefix, list = "W/", list[2:]
		}
		if !strings.HasPrefix(list, `"`) {
			return false // not a list of ETags from here on
		}
		end := strings.IndexByte(list[1:], '"')
		if end < 0 {
			return false
		}
		if etag != "" && weak(prefix+list[:end+2]) == weak(etag) {
			return true
		}
		list = list[end+2:]
	}
	return false
}

// weak is an ETag as weak comparison sees it (RFC 9110 section 8.8.3.2).
func weak(etag string) string { return strings.TrimPrefix(etag, "W/") }

package rules

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/record"
)

// Confirms reports whether a 304 is about the stored response: it has the same strong validator, or the same weak one (RFC 9111 section
// 4.3.4). A 304 without a validator is believed.
func Confirms(sent http.Header, stored *record.Record) bool {
	etag, modified := sent.Get("Etag"), sent.Get("Last-Modified")
	switch {
	case strings.HasPrefix(etag, "W/"):
		return weak(etag) == weak(stored.Get("Etag"))
	case etag != "":
		return etag == stored.Get("Etag")
	}
	return modified == "" || modified == stored.Get("Last-Modified")
}

// Updated is the header of a stored response, updated by a later response (RFC 9111 section 3.2). Fields about the encoding and the
// range of the body stay as they are.
func Updated(stored *record.Record, sent http.Header, without []string, received time.Time) http.Header {
	h := stored.HTTPHeader()
	skip, trailer := Unstorable(sent, without), Trailers(sent)
	for name, values := range sent {
		if !skip(name) && !trailer(name) && name != "Content-Encoding" && name != "Content-Range" {
			h[name] = values
		}
	}
	if sent.Get("Date") == "" {
		h.Set("Date", received.UTC().Format(http.TimeFormat))
	}
	if sent.Get("Age") == "" {
		h.Del("Age")
	}
	return h
}

// margin is how much older than its Date a Last-Modified has to be to count as a strong validator (RFC 9110 section 8.8.2.2).
const margin = time.Minute

// StrongValidator returns the field that shows which responses have the same bytes. Its name is empty if there is none.
func StrongValidator(get func(string) string, received time.Time) (name, value string) {
	if etag := get("Etag"); etag != "" {
		if len(etag) > 1 && strings.HasPrefix(etag, `"`) && strings.HasSuffix(etag, `"`) {
			return "Etag", etag
		}
		return "", ""
	}
	sent, ok := ParseDate(get("Date"), received)
	if !ok {
		sent = received
	}
	value = get("Last-Modified")
	if modified, ok := ParseDate(value, received); ok && !modified.Add(margin).After(sent) {
		return "Last-Modified", value
	}
	return "", ""
}

// SameValidator reports whether two responses have the same strong validator, and so the same body.
func SameValidator(a, b func(string) string) bool {
	now := time.Now()
	nameA, valueA := StrongValidator(a, now)
	nameB, valueB := StrongValidator(b, now)
	return nameA != "" && nameA == nameB && valueA == valueB
}

// DeclaredSize is the size of the page that a response is, or is a part of, as its header says; 0: it does not say.
func DeclaredSize(status int, h http.Header) int64 {
	length := h.Get("Content-Length")
	if status == http.StatusPartialContent {
		_, length, _ = strings.Cut(h.Get("Content-Range"), "/")
	}
	size, err := strconv.ParseInt(length, 10, 64)
	if err != nil {
		return 0
	}
	return size
}

// DropConditions removes the conditions and the range from the header of a request.
func DropConditions(h http.Header) {
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"} {
		h.Del(name)
	}
}

// Unchanged reports whether the client already has the response with these fields, according to the condition that it sent (RFC 9110
// section 13.2). Modified are the fields that may say since when, the first of which counts.
func Unchanged(r *http.Request, get func(name string) string, modified ...string) bool {
	if lines := r.Header["If-None-Match"]; len(lines) > 0 {
		return listsETag(lines, get("Etag"))
	}
	lines := r.Header["If-Modified-Since"]
	if len(lines) != 1 {
		return false
	}
	for _, name := range modified {
		if value := get(name); value != "" {
			since, ok := ParseDate(lines[0], time.Now())
			at, dated := ParseDate(value, time.Now())
			return ok && dated && !at.After(since)
		}
	}
	return false
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

package middleware

import (
	"bytes"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// send answers with a stored response, as a whole or as the client wants it.
func (x *exchange) send(l *lookup, got fetched) {
	now, rec := time.Now(), got.rec
	if rec.Kind == record.Sliced {
		x.sendSliced(l, got)
		return
	}
	h := x.w.Header()
	setHeader(h, byName(rec))
	if got.own != nil {
		got.own.addUnstored(h)
	}
	if h["Content-Type"] == nil {
		h["Content-Type"] = nil // there is none, and net/http must not guess one
	}
	if got.own == nil || got.own.standsIn || got.own.merges {
		h["Age"] = x.line(ageLine, strconv.FormatInt(int64(rec.Age(now)/time.Second), 10))
	}
	x.addStatus(x.describe(l, got, now))
	x.res.Status, x.res.Route = rec.Status, rec.Route
	switch {
	case rec.Status != http.StatusOK:
		x.write(rec)
	case conditional(x.r) && unchangedFor(x.r, rec.Get):
		notModified(x.w)
		x.res.Status = http.StatusNotModified
	case x.r.Method == http.MethodGet && strings.HasPrefix(x.r.Header.Get("Range"), "bytes=") && len(rec.Trailer) == 0:
		modified, _ := rules.ParseDate(rec.Get("Last-Modified"), now)
		w := &passing{ResponseWriter: x.w, before: func(int) {}}
		http.ServeContent(w, withoutConditions(x.r), "", modified, bytes.NewReader(rec.Body))
		x.res.Status = w.status
	default:
		x.write(rec)
	}
}

// The fields that an exchange sets itself, one line each.
const (
	ageLine = iota
	statusLine
	lengthLine
	ownLines
)

// line makes the lines of a field, which are kept with the exchange.
func (x *exchange) line(field int, value string) []string {
	x.lines[field] = value
	return x.lines[field : field+1 : field+1]
}

// addUnstored adds the fields of a response that are for the client alone that caused it: RFC 9111 restricts their reuse.
func (out *run) addUnstored(h http.Header) {
	if out.standsIn {
		return
	}
	trailer := rules.Trailers(out.w.sent)
	skip := rules.Unstorable(out.w.sent, out.terms.Without)
	for name, values := range out.w.sent {
		switch name {
		case "Content-Length", "Transfer-Encoding", "Trailer":
			continue // of how it was sent here
		}
		if skip(name) && !trailer(name) {
			h[name] = append(h[name], values...)
		}
	}
}

// notModified says that the client has the response already. The fields are those of the response, but for what they say of its
// body.
func notModified(w http.ResponseWriter) {
	h := w.Header()
	for _, name := range []string{"Content-Encoding", "Content-Language", "Content-Length", "Content-Type"} {
		h.Del(name)
	}
	if h.Get("Etag") != "" {
		h.Del("Last-Modified")
	}
	w.WriteHeader(http.StatusNotModified)
}

// conditional reports whether a request has a condition that a cache may judge.
func conditional(r *http.Request) bool {
	return len(r.Header["If-None-Match"])+len(r.Header["If-Modified-Since"]) > 0
}

// withoutConditions is a request of which only the range is left to judge.
func withoutConditions(r *http.Request) *http.Request {
	if !conditional(r) {
		return r
	}
	r2 := *r
	r2.Header = r.Header.Clone()
	r2.Header.Del("If-None-Match")
	r2.Header.Del("If-Modified-Since")
	return &r2
}

// write sends the whole response.
func (x *exchange) write(rec *record.Record) {
	h := x.w.Header()
	bodyless := rec.Status == http.StatusNoContent
	if len(rec.Trailer) > 0 {
		for _, p := range rec.Trailer {
			h.Add("Trailer", p.Name)
		}
	} else if !bodyless {
		h["Content-Length"] = x.line(lengthLine, strconv.Itoa(len(rec.Body)))
	}
	x.w.WriteHeader(rec.Status)
	if x.r.Method != http.MethodHead && !bodyless {
		_, _ = x.w.Write(rec.Body) // it fails when the client has left
	}
	for _, p := range rec.Trailer {
		h.Add(p.Name, p.Value)
	}
}

// byName goes through the header of a record, by name.
func byName(rec *record.Record) iter.Seq2[string, []string] {
	values := make([]string, len(rec.Header))
	for i, p := range rec.Header {
		values[i] = p.Value
	}
	return func(yield func(string, []string) bool) {
		for from := 0; from < len(values); {
			to := from + 1
			for to < len(values) && rec.Header[to].Name == rec.Header[from].Name {
				to++
			}
			if !yield(rec.Header[from].Name, values[from:to:to]) {
				return
			}
			from = to
		}
	}
}

// setHeader sets fields in the header of a response. To what other middlewares have set there before, lists that concern them
// too are added.
func setHeader(h http.Header, fields iter.Seq2[string, []string]) {
	for name, values := range fields {
		if before := h[name]; len(before) > 0 && (name == "Vary" || name == "Set-Cookie") {
			for _, v := range values {
				if !slices.Contains(before, v) {
					before = append(before, v)
				}
			}
			values = before
		}
		h[name] = values
	}
}

// unchangedFor reports whether the client has the response with these fields already, by the condition it sent (RFC 9110 section
// 13.2).
func unchangedFor(r *http.Request, get func(name string) string) bool {
	if lines := r.Header["If-None-Match"]; len(lines) > 0 {
		return listsETag(lines, get("Etag"))
	}
	lines := r.Header["If-Modified-Since"]
	if len(lines) != 1 {
		return false
	}
	since, ok := rules.ParseDate(lines[0], time.Now())
	if !ok {
		return false
	}
	modified := get("Last-Modified")
	if modified == "" {
		modified = get("Date") // RFC 9111 section 4.3.2
	}
	at, ok := rules.ParseDate(modified, time.Now())
	return ok && !at.After(since)
}

// listsETag reports whether a list of ETags has this one, by weak comparison.
func listsETag(lines []string, etag string) bool {
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

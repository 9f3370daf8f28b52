package middleware

import (
	"bytes"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// send answers with a stored response, as a whole or as the client wants it.
func (x *exchange) send(l *lookup, got fetched) {
	now, rec := time.Now(), got.rec
	h := x.w.Header()
	setHeader(h, rec.byName())
	if got.own == nil || got.own.standsIn || got.own.merges {
		h["Age"] = []string{strconv.FormatInt(int64(rec.age(now)/time.Second), 10)}
	}
	x.status(x.describe(l, got, now))
	x.res.Status, x.res.Route = rec.status, rec.route
	switch {
	case rec.status != http.StatusOK:
		x.write(rec)
	case rec.unchangedFor(x.r):
		for _, name := range []string{"Content-Encoding", "Content-Language", "Content-Length", "Content-Type"} {
			h.Del(name)
		}
		if h.Get("Etag") != "" {
			h.Del("Last-Modified")
		}
		x.res.Status = http.StatusNotModified
		x.w.WriteHeader(http.StatusNotModified)
	case x.r.Method == http.MethodGet && strings.HasPrefix(x.r.Header.Get("Range"), "bytes=") && len(rec.trailer) == 0:
		modified, _ := http.ParseTime(rec.get("Last-Modified"))
		w := &passing{ResponseWriter: x.w, before: func(int) {}}
		http.ServeContent(w, withoutConditions(x.r), "", modified, bytes.NewReader(rec.body))
		x.res.Status = w.status
	default:
		x.write(rec)
	}
}

// withoutConditions is a request of which only the range is left to judge.
func withoutConditions(r *http.Request) *http.Request {
	if len(r.Header["If-None-Match"])+len(r.Header["If-Modified-Since"]) == 0 {
		return r
	}
	r2 := *r
	r2.Header = r.Header.Clone()
	r2.Header.Del("If-None-Match")
	r2.Header.Del("If-Modified-Since")
	return &r2
}

// write sends the whole response.
func (x *exchange) write(rec *record) {
	h := x.w.Header()
	bodyless := rec.status == http.StatusNoContent
	if len(rec.trailer) > 0 {
		for _, p := range rec.trailer {
			h.Add("Trailer", p.name)
		}
	} else if !bodyless {
		h["Content-Length"] = []string{strconv.Itoa(len(rec.body))}
	}
	x.w.WriteHeader(rec.status)
	if x.r.Method != http.MethodHead && !bodyless {
		_, _ = x.w.Write(rec.body) // it fails when the client has left
	}
	for _, p := range rec.trailer {
		h.Add(p.name, p.value)
	}
}

// byName goes through the header of a record, by name.
func (e *record) byName() iter.Seq2[string, []string] {
	values := make([]string, len(e.header))
	for i, p := range e.header {
		values[i] = p.value
	}
	return func(yield func(string, []string) bool) {
		for from := 0; from < len(values); {
			to := from + 1
			for to < len(values) && e.header[to].name == e.header[from].name {
				to++
			}
			if !yield(e.header[from].name, values[from:to:to]) {
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

// unchangedFor reports whether the client has the response already, by the condition it sent (RFC 9110 section 13.2).
func (e *record) unchangedFor(r *http.Request) bool {
	if lines := r.Header["If-None-Match"]; len(lines) > 0 {
		return listsETag(lines, e.get("Etag"))
	}
	lines := r.Header["If-Modified-Since"]
	if len(lines) != 1 {
		return false
	}
	since, err := http.ParseTime(lines[0])
	if err != nil {
		return false
	}
	modified := e.get("Last-Modified")
	if modified == "" {
		modified = e.get("Date") // RFC 9111 section 4.3.2
	}
	at, err := http.ParseTime(modified)
	return err == nil && !at.After(since)
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

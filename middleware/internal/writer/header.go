package writer

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cacheguard/go/middleware/internal/record"
)

// Canonical returns a copy of a header, with the canonical name of every field.
func Canonical(h http.Header) http.Header {
	sent := make(http.Header, len(h))
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		sent[name] = append(sent[name], values...)
	}
	return sent
}

// What a handler did to fields that were set in front of the cache, as a record says it. Other fields of its own replace them.
const (
	added   = "+"
	removed = "-"
)

// Own is what is the handler's of a header, and what it did to the fields in front: no line of those is its own.
func Own(front, sent http.Header) (own http.Header, did []record.Pair) {
	if len(front) == 0 {
		return sent, nil
	}
	own = make(http.Header, len(sent))
	for name, lines := range sent {
		before := front[name]
		kept := !slices.ContainsFunc(before, func(line string) bool { return !slices.Contains(lines, line) })
		lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(before, line) })
		if len(lines) > 0 {
			own[name] = lines
		}
		switch {
		case len(before) > 0 && kept && len(lines) > 0:
			did = append(did, record.Pair{Name: name, Value: added})
		case !kept && len(lines) == 0:
			did = append(did, record.Pair{Name: name, Value: removed})
		}
	}
	for name := range front {
		if _, there := sent[name]; !there {
			did = append(did, record.Pair{Name: name, Value: removed})
		}
	}
	slices.SortFunc(did, func(a, b record.Pair) int { return strings.Compare(a.Name, b.Name) })
	return own, did
}

// SetHeader does to a header what the handler of a stored response did. Vary and Set-Cookie in front are kept in any case.
func SetHeader(h http.Header, rec *record.Record) {
	for _, p := range rec.Front {
		if p.Value == removed {
			delete(h, p.Name)
		}
	}
	for name, values := range rec.Fields() {
		if before := h[name]; len(before) > 0 && (name == "Vary" || name == "Set-Cookie" || slices.Contains(rec.Front, record.Pair{Name: name, Value: added})) {
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

// Final is what a client gets with that in front, of a record with another header of its own.
func Final(front http.Header, rec *record.Record, own http.Header) http.Header {
	h, all := Canonical(front), *rec
	all.Header = record.Pairs(own, func(string) bool { return false })
	SetHeader(h, &all)
	return h
}

// Hide removes fields, given by their canonical names, from a header and the trailer in it.
func Hide(h http.Header, names []string) {
	if len(names) == 0 {
		return
	}
	maps.DeleteFunc(h, func(name string, _ []string) bool {
		return slices.Contains(names, http.CanonicalHeaderKey(strings.TrimPrefix(name, http.TrailerPrefix)))
	})
}

// inform sends an informational response without the hidden fields, and then restores the header.
func inform(client http.ResponseWriter, before http.Header, status int, hidden []string) {
	Hide(client.Header(), hidden)
	client.WriteHeader(status)
	replace(client.Header(), before)
}

func replace(h, by http.Header) {
	clear(h)
	maps.Copy(h, by)
}

// NotModified answers with a 304. It has the fields of the response in w that do not describe the body.
func NotModified(w http.ResponseWriter) {
	h := w.Header()
	for _, name := range []string{"Content-Encoding", "Content-Language", "Content-Length", "Content-Type"} {
		h.Del(name)
	}
	if h.Get("Etag") != "" {
		h.Del("Last-Modified")
	}
	w.WriteHeader(http.StatusNotModified)
}

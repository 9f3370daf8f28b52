package writer

import (
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
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

// SetHeader sets fields in the header of a response. Vary and Set-Cookie that other middlewares have set before are kept.
func SetHeader(h http.Header, fields iter.Seq2[string, []string]) {
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
	h := client.Header()
	Hide(h, hidden)
	client.WriteHeader(status)
	clear(h)
	maps.Copy(h, before)
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

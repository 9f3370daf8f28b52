package middleware

import (
	"net/http"
	"strconv"
	"time"

	"github.com/cacheguard/go/middleware/internal/record"
)

// lateWriter sends the header with the first byte of the body: until then, the answer may become another one.
type lateWriter struct {
	x      *exchange
	header http.Header
	before func() // called before the header is sent, to complete it
	status int    // 0: none yet
	sent   bool
}

// setHead sets the fields of the page, and those that its handler has for this client alone.
func (w *lateWriter) setHead(head *record.Record, own *run, now time.Time) {
	setHeader(w.header, byName(head))
	if own != nil {
		own.addUnstored(w.header)
	}
	if w.header["Content-Type"] == nil {
		w.header["Content-Type"] = nil // there is none, and none must be guessed
	}
	w.header["Age"] = []string{strconv.FormatInt(int64(head.Age(now)/time.Second), 10)}
	w.header["Content-Length"] = []string{strconv.FormatInt(head.Length, 10)} // of a whole that is encoded, ServeContent does not say it
}

// Header is part of http.ResponseWriter.
func (w *lateWriter) Header() http.Header { return w.header }

// WriteHeader is part of http.ResponseWriter.
func (w *lateWriter) WriteHeader(status int) { w.status = status }

// Write is part of http.ResponseWriter.
func (w *lateWriter) Write(b []byte) (int, error) {
	w.begin()
	return w.x.w.Write(b)
}

// begin sends the header.
func (w *lateWriter) begin() {
	if w.sent {
		return
	}
	w.sent = true
	h := w.x.w.Header()
	clear(h)
	for name, values := range w.header {
		h[name] = values
	}
	w.before()
	w.x.res.Status = w.status
	w.x.w.WriteHeader(w.status)
}

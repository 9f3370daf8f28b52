package middleware

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// passing is the http.ResponseWriter of a handler whose response is not for the cache.
type passing struct {
	http.ResponseWriter
	before func(status int) // called once, when the header is about to be sent
	status int
}

// WriteHeader is part of http.ResponseWriter.
func (w *passing) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
		w.before(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write is part of http.ResponseWriter.
func (w *passing) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// ReadFrom has net/http send files without copying them.
func (w *passing) ReadFrom(src io.Reader) (int64, error) {
	w.begin()
	return io.Copy(w.ResponseWriter, src)
}

// begin sends the header if that is still to be done.
func (w *passing) begin() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
}

// finish is called after the handler has returned.
func (w *passing) finish() {
	if w.status == 0 {
		w.status = http.StatusOK
		w.before(http.StatusOK)
	}
}

// FlushError is for http.ResponseController.
func (w *passing) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush is part of http.Flusher.
func (w *passing) Flush() { _ = w.FlushError() }

// Hijack is part of http.Hijacker.
func (w *passing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (w *passing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

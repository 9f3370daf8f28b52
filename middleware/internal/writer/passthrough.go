package writer

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// PassThrough hands a response on to its client as it is written.
type PassThrough struct {
	http.ResponseWriter
	Before func(status int) // called once, when the header is about to be sent
	Hidden []string         // fields that informational responses do not have
	Status int              // 0: none yet
}

// WriteHeader implements http.ResponseWriter.
func (w *PassThrough) WriteHeader(status int) {
	if w.Status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.Status = status
		w.Before(status)
	}
	if status < 200 && len(w.Hidden) > 0 {
		inform(w.ResponseWriter, w.Header().Clone(), status, w.Hidden)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *PassThrough) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// ReadFrom lets net/http send files without copying them.
func (w *PassThrough) ReadFrom(src io.Reader) (int64, error) {
	w.begin()
	return io.Copy(w.ResponseWriter, src)
}

// begin sends the header if the handler has not.
func (w *PassThrough) begin() {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
}

// Finish completes the header if the handler returned without sending one.
func (w *PassThrough) Finish() {
	if w.Status == 0 {
		w.Status = http.StatusOK
		w.Before(http.StatusOK)
	}
}

// FlushError serves http.ResponseController.
func (w *PassThrough) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *PassThrough) Flush() { _ = w.FlushError() }

// Hijack implements http.Hijacker.
func (w *PassThrough) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.Status == 0 {
		w.Status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

// Unwrap serves http.ResponseController.
func (w *PassThrough) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Late sends the header together with the first byte of the body. Before that, the answer can still be replaced by another one.
type Late struct {
	Client http.ResponseWriter
	Fields http.Header      // the header that will be sent
	Before func(status int) // called before the header is sent, with the Client's header to complete
	Begun  bool             // the header has been sent

	status int // 0: none yet
}

// Header implements http.ResponseWriter.
func (w *Late) Header() http.Header { return w.Fields }

// WriteHeader implements http.ResponseWriter.
func (w *Late) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *Late) Write(b []byte) (int, error) {
	w.Begin()
	return w.Client.Write(b)
}

// Begin sends the header, if that is still to be done.
func (w *Late) Begin() {
	if w.Begun {
		return
	}
	w.Begun = true
	replace(w.Client.Header(), w.Fields)
	w.Before(w.status)
	w.Client.WriteHeader(w.status)
}

package writer

import "net/http"

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

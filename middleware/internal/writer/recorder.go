// Package writer has the http.ResponseWriters that handlers write to: Recorder holds a response back as long as it may be
// stored, PassThrough passes it on as it comes, and Late delays the header until there is a body.
package writer

import (
	"bufio"
	"errors"
	"maps"
	"net"
	"net/http"
	"strconv"

	"github.com/cacheguard/go/middleware/internal/rules"
)

var (
	// ErrUnheard ends the context of a handler whose response can neither be stored nor sent to anybody.
	ErrUnheard = errors.New("middleware: the response cannot be stored, and nobody waits for it")
	// errDropped is what the writes of such a handler return.
	errDropped = errors.New("middleware: nobody receives this response")
)

// Recorder is the http.ResponseWriter of a handler whose response may be stored. It holds the response back until the handler returns,
// or until the response turns out not to be storable. Then it releases it: to the client that the handler runs for, or to nobody. Only
// the handler's goroutine may use a Recorder before that has ended, except for Released.
type Recorder struct {
	Decide  func(status int, h http.Header) Decision // called with the header of the final response
	Before  func(status int)                         // called before the client gets a header, to complete it
	Leaving func() bool                              // called when the response is released; reports whether the client may have it

	Hidden []string // fields that informational responses do not have

	Status   int         // 0: none yet
	Sent     http.Header // the header as it was when the status was set; fields added later count only as trailers
	Body     []byte
	Unfit    string // why the response cannot be stored, if that was said
	Hijacked bool

	front    http.Header         // what was set in front
	client   http.ResponseWriter // nil: nobody is there to get what cannot be stored
	request  *http.Request       // of the client
	limit    int
	header   http.Header
	open     bool          // the response has been released
	released chan struct{} // closed then
	explicit bool
	discard  bool
	excess   bool // the handler has written more than it announced
}

// NewRecorder returns a Recorder of bodies of at most limit bytes, for a client and its request; nil: for nobody. The handler finds the
// header that was set in front.
func NewRecorder(client http.ResponseWriter, r *http.Request, front http.Header, limit int) *Recorder {
	return &Recorder{client: client, request: r, front: front, limit: limit, released: make(chan struct{}), header: Canonical(front)}
}

// Released is closed when the response turns out not to be storable.
func (w *Recorder) Released() <-chan struct{} { return w.released }

// IsReleased reports whether the response turned out not to be storable.
func (w *Recorder) IsReleased() bool { return w.open }

// Reached reports whether the client got anything of the response.
func (w *Recorder) Reached() bool { return w.Hijacked || w.open && w.client != nil }

// Reset forgets a response that was held back.
func (w *Recorder) Reset() {
	w.header, w.Sent, w.Status, w.Body, w.explicit, w.discard, w.excess = Canonical(w.front), nil, 0, nil, false, false, false
}

// Header implements http.ResponseWriter.
func (w *Recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Informational responses reach the client at once. An error counts even if a better status
// was set before, as long as nothing is sent: http.Error, recoverers and time-outs say so that what is there is not the page.
func (w *Recorder) WriteHeader(status int) {
	switch {
	case w.Hijacked, w.Status != 0 && (w.open || status < 400 || status/100 <= w.Status/100):
		return
	case status == http.StatusSwitchingProtocols:
		w.Status, w.Sent = status, Canonical(w.header)
		w.Release()
		return
	case status >= 100 && status < 200:
		w.inform(status)
		return
	}
	begun := w.Status != 0
	w.Status, w.Sent = status, Canonical(w.header)
	decision := w.Decide(status, w.Sent)
	w.explicit, w.discard = decision.Explicit, decision.Discard
	if !begun {
		w.Body = make([]byte, 0, decision.Size)
	} else if !w.discard { // what was written before stays: it may be the beginning of a compressed body
		decision.Unfit = Incomplete
	}
	if decision.Unfit != "" {
		w.releaseAs(decision.Unfit)
	}
}

// inform sends an informational response. The final response does not have its fields.
func (w *Recorder) inform(status int) {
	if w.client == nil {
		return
	}
	before := w.client.Header().Clone()
	replace(w.client.Header(), w.header)
	inform(w.client, before, status, w.Hidden)
}

// Write implements http.ResponseWriter.
func (w *Recorder) Write(b []byte) (int, error) {
	if w.Hijacked {
		return 0, http.ErrHijacked
	}
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.open && w.discard {
		return len(b), nil
	}
	if w.exceeds(len(b)) {
		return 0, http.ErrContentLength
	}
	if !w.open && len(w.Body)+len(b) <= w.limit {
		w.Body = append(w.Body, b...)
		return len(b), nil
	}
	if !w.open {
		w.releaseAs(TooLarge)
	}
	switch {
	case w.client == nil:
		return 0, errDropped
	case w.discard:
		return len(b), nil
	}
	return w.client.Write(b)
}

// exceeds reports whether the handler writes more than it announced. As in net/http, that and all that follows it is no part of the body.
func (w *Recorder) exceeds(n int) bool {
	if !w.open && !w.excess {
		announced, err := strconv.ParseInt(w.Sent.Get("Content-Length"), 10, 64)
		w.excess = err == nil && announced >= 0 && int64(len(w.Body)+n) > announced
	}
	return w.excess && n > 0
}

// releaseAs releases the response and says why.
func (w *Recorder) releaseAs(unfit string) {
	w.Unfit = unfit
	w.Release()
}

// Release sends what was held back to the client, and has what follows sent as it comes. The handler did not see the client's
// condition, so it is evaluated here.
func (w *Recorder) Release() {
	if w.open {
		return
	}
	w.leave()
	if w.client == nil {
		w.Body = nil
		return
	}
	h, trailer := maps.Clone(w.Sent), rules.Trailers(w.Sent)
	maps.DeleteFunc(h, func(name string, _ []string) bool { return trailer(name) })
	replace(w.client.Header(), h)
	w.Before(w.Status)
	if w.Status == http.StatusOK && rules.Unchanged(w.request, w.Sent.Get, "Last-Modified") {
		w.discard, w.Body = true, nil
		NotModified(w.client)
		return
	}
	w.client.WriteHeader(w.Status)
	if len(w.Body) > 0 {
		_, _ = w.client.Write(w.Body) // an error shows again at the handler's next Write
		w.Body = nil
	}
}

// leave marks the response as one for its client alone.
func (w *Recorder) leave() {
	w.open = true
	if !w.Leaving() {
		w.client = nil
	}
	close(w.released)
}

// FlushError serves http.ResponseController. A response that itself says that it may be stored is still held back, as proxies flush
// after each write. Any other is meant to be read while it is written, and is released.
func (w *Recorder) FlushError() error {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.open && w.explicit {
		return nil
	}
	if !w.open {
		w.releaseAs(flushed)
	}
	if w.client == nil {
		return errDropped
	}
	return http.NewResponseController(w.client).Flush()
}

// Flush implements http.Flusher.
func (w *Recorder) Flush() { _ = w.FlushError() }

// Hijack implements http.Hijacker.
func (w *Recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.client == nil {
		return nil, nil, errDropped
	}
	conn, rw, err := http.NewResponseController(w.client).Hijack()
	if err == nil && !w.Hijacked {
		w.Hijacked = true
		if !w.open {
			w.leave()
		}
	}
	return conn, rw, err
}

// Unwrap serves the deadlines of http.ResponseController.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.client }

// Finish completes the response after the handler has returned.
func (w *Recorder) Finish() {
	if w.Hijacked {
		return
	}
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.open && w.client != nil {
		trailer := rules.Trailers(w.Sent)
		for name, values := range w.header {
			if trailer(name) {
				w.client.Header()[name] = values
			}
		}
	}
}

package middleware

import (
	"bufio"
	"errors"
	"maps"
	"net"
	"net/http"

	"github.com/cacheguard/go/middleware/internal/rules"
)

// errDropped is what a handler gets whose response nobody can receive any more.
var errDropped = errors.New("middleware: nobody receives this response")

// recorder is the http.ResponseWriter of a handler whose response may be stored. As long as that is so it holds the
// response back. When it is not, the response goes to the client that the handler runs for, if it is there, and committed is
// closed. It is used by the handler's goroutine alone until done.
type recorder struct {
	out       http.ResponseWriter           // nil: nobody is there to have what cannot be stored
	send      func(status int)              // called before a header goes to out, to complete it
	unchanged func(header http.Header) bool // the client has the response already, as its condition says
	keep      func(status int, h http.Header) (unfit string, explicit bool)
	maxBody   int
	leaves    func() bool   // called before committed is closed; reports whether out may have the response
	committed chan struct{} // closed when the response cannot be stored

	header   http.Header
	sent     http.Header // as header was when the status was given: what comes later counts in trailers only
	status   int         // 0: none yet
	body     []byte
	discard  bool   // the body is for nobody
	unfit    string // why it cannot be stored, if it was said; not changed once it is open
	open     bool   // the response goes to out, or nowhere
	explicit bool
	hijacked bool
}

func newRecorder(out http.ResponseWriter, maxBody int) *recorder {
	return &recorder{
		out: out, maxBody: maxBody, leaves: func() bool { return true }, committed: make(chan struct{}), header: make(http.Header),
	}
}

// Header is part of http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader is part of http.ResponseWriter. Informational responses go to the client at once.
func (w *recorder) WriteHeader(status int) {
	switch {
	case w.status != 0 || w.hijacked:
		return
	case status == http.StatusSwitchingProtocols:
		w.status, w.sent = status, canonical(w.header)
		w.pass()
		return
	case status >= 100 && status < 200:
		w.inform(status)
		return
	}
	w.status, w.sent = status, canonical(w.header)
	unfit, explicit := w.keep(status, w.sent)
	w.explicit = explicit
	if unfit != "" {
		w.passFor(unfit)
	}
}

// canonical is a copy of a header in which each field has its one name.
func canonical(h http.Header) http.Header {
	sent := make(http.Header, len(h))
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		sent[name] = append(sent[name], values...)
	}
	return sent
}

// inform sends an informational response. Its fields are not those of the final one.
func (w *recorder) inform(status int) {
	if w.out == nil {
		return
	}
	h := w.out.Header()
	before := h.Clone()
	setHeader(h, maps.All(w.header))
	w.out.WriteHeader(status)
	clear(h)
	maps.Copy(h, before)
}

// Write is part of http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) {
	if w.hijacked {
		return 0, http.ErrHijacked
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.open && w.discard {
		return len(b), nil
	}
	if !w.open && len(w.body)+len(b) <= w.maxBody {
		w.body = append(w.body, b...)
		return len(b), nil
	}
	if !w.open {
		w.passFor(tooLarge)
	}
	switch {
	case w.out == nil:
		return 0, errDropped
	case w.discard:
		return len(b), nil
	}
	return w.out.Write(b)
}

// tooLarge says that a response is larger than MaxBody.
const tooLarge = "too-large"

// passFor is pass with the reason.
func (w *recorder) passFor(unfit string) {
	w.unfit = unfit
	w.pass()
}

// pass lets what was held back go to the client, and what follows. The handler did not see the client's condition: whether that
// holds is found here.
func (w *recorder) pass() {
	if w.open {
		return
	}
	w.commit()
	if w.out == nil {
		w.body = nil
		return
	}
	w.copyHeader()
	w.send(w.status)
	if w.status == http.StatusOK && w.unchanged(w.sent) {
		w.discard, w.body = true, nil
		notModified(w.out)
		return
	}
	w.out.WriteHeader(w.status)
	if len(w.body) > 0 {
		_, _ = w.out.Write(w.body) // the handler's next Write tells it
		w.body = nil
	}
}

// commit says that the response is for one client, from here on.
func (w *recorder) commit() {
	w.open = true
	if !w.leaves() {
		w.out = nil
	}
	close(w.committed)
}

// copyHeader sets the handler's fields in the client's header.
func (w *recorder) copyHeader() {
	trailer := rules.Trailers(w.sent)
	h := maps.Clone(w.sent)
	maps.DeleteFunc(h, func(name string, _ []string) bool { return trailer(name) })
	setHeader(w.out.Header(), maps.All(h))
}

// FlushError makes http.ResponseController flush. What says itself that it may be stored is held back all the same: proxies
// flush after each write. Anything else passes from here on, as it is meant to be read while it is written.
func (w *recorder) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.open && w.explicit {
		return nil
	}
	if !w.open {
		w.passFor("flush")
	}
	if w.out == nil {
		return errDropped
	}
	return http.NewResponseController(w.out).Flush()
}

// Flush is part of http.Flusher.
func (w *recorder) Flush() { _ = w.FlushError() }

// Hijack is part of http.Hijacker.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.out == nil {
		return nil, nil, errDropped
	}
	conn, rw, err := http.NewResponseController(w.out).Hijack()
	if err == nil && !w.hijacked {
		w.hijacked = true
		if !w.open {
			w.commit()
		}
	}
	return conn, rw, err
}

// Unwrap is for http.ResponseController's deadlines.
func (w *recorder) Unwrap() http.ResponseWriter { return w.out }

// reset forgets a response that was held back.
func (w *recorder) reset() {
	w.header, w.sent, w.status, w.body, w.explicit, w.discard = make(http.Header), nil, 0, nil, false, false
}

// finish ends the response after the handler has returned.
func (w *recorder) finish() {
	if w.hijacked {
		return
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.open && w.out != nil {
		trailer := rules.Trailers(w.sent)
		for name, values := range w.header {
			if trailer(name) {
				w.out.Header()[name] = values
			}
		}
	}
}

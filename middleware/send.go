package middleware

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// send answers with a stored response: all of it, or the part that the client wants. It reports whether the answer has to start over.
func (x *exchange) send(l *lookup, got found) (again bool) {
	if got.rec.Kind == record.Sliced {
		return x.sendSliced(l, got)
	}
	now, rec, trailer := l.sentAt(got), got.rec, got.trailer()
	h := x.w.Header()
	x.setHead(h, got)
	if got.own == nil || got.own.standsIn || got.own.confirmed {
		h["Age"] = x.line(ageLine, seconds(rec.Age(now)))
	}
	x.addStatus(x.describe(l, got, now))
	x.res.Status, x.res.Route = rec.Status, rec.Route
	if (x.res.Result == Hit || x.res.Result == Stale) && rec.Status >= http.StatusInternalServerError {
		x.res.Result = Faulty
	}
	switch {
	case rec.Status != http.StatusOK:
		x.write(rec, trailer)
	case x.unchanged(rec):
		writer.NotModified(x.w)
		x.res.Status = http.StatusNotModified
	case x.wantsRange() && len(trailer) == 0:
		w := &writer.PassThrough{ResponseWriter: x.w, Before: func(int) {}}
		x.sendContent(w, rec, bytes.NewReader(rec.Body))
		x.res.Status = w.Status
	default:
		x.write(rec, trailer)
	}
	return false
}

// describe is the member of Cache-Status for a stored response.
func (x *exchange) describe(l *lookup, got found, now time.Time) string {
	left := got.rec.Fresh(now)
	f := cachestatus.Forward{Why: l.why, TTL: left, HasTTL: true}
	switch own := got.own; {
	case own != nil:
		f.Status, f.Stored, f.Detail, f.HasTTL = own.w.Status, own.stored.Load(), own.refused, own.refused == ""
		if got.result() == Bypassed {
			f.Stored, f.Detail = false, l.detail("redis")
		}
	case got.result() == Shared || got.result() == Loaded:
		f.Collapsed = true
	case got.result() == Bypassed:
		f.Collapsed, f.Detail = true, l.detail("redis")
	default:
		return x.cache.hits.Of(left)
	}
	return x.cache.cfg.Name + f.String()
}

// sendContent sends a body, or the range of it that the client wants. The rules of net/http for ranges are right; conditions have been evaluated.
func (x *exchange) sendContent(w http.ResponseWriter, rec *record.Record, body io.ReadSeeker) {
	r := &http.Request{Method: x.r.Method, Header: make(http.Header)}
	if x.wantsRange() {
		r.Header["Range"], r.Header["If-Range"] = x.r.Header["Range"], x.r.Header["If-Range"]
	}
	modified, _ := rules.ParseDate(rec.Get("Last-Modified"), x.now())
	http.ServeContent(w, r, "", modified, body)
}

func (x *exchange) wantsRange() bool {
	asked := x.r.Header["Range"]
	return x.r.Method == http.MethodGet && len(asked) > 0 && strings.HasPrefix(asked[0], "bytes=") && !rules.IsLong(asked)
}

// unchanged reports whether the client has the response already (RFC 9111 section 4.3.2).
func (x *exchange) unchanged(rec *record.Record) bool {
	return rules.Unchanged(x.r, rec.Get, "Last-Modified", "Date")
}

// setHead sets the fields of a stored response, and what its handler meant for this client alone.
func (x *exchange) setHead(h http.Header, got found) {
	writer.SetHeader(h, got.rec)
	if got.own != nil {
		got.own.addUnstored(h)
	}
	if h["Content-Type"] == nil {
		h["Content-Type"] = nil // the response has none, and net/http must not guess one
	}
}

// addUnstored adds the fields of a response that are for the client that caused it alone, because RFC 9111 restricts their reuse.
func (b *build) addUnstored(h http.Header) {
	if b.standsIn {
		return
	}
	trailer := rules.Trailers(b.w.Sent)
	skip := rules.Unstorable(b.w.Sent, b.assessed.Without)
	own, _ := writer.Own(b.lookup.x.front, b.w.Sent)
	for name, values := range own {
		switch name {
		case "Content-Length", "Transfer-Encoding", "Trailer":
			continue // they describe only how the handler sent it
		}
		if skip(name) && !trailer(name) {
			h[name] = append(h[name], values...)
		}
	}
}

// write sends the whole response.
func (x *exchange) write(rec *record.Record, trailer []record.Pair) {
	h := x.w.Header()
	bodyless := rec.Status == http.StatusNoContent
	if len(trailer) > 0 {
		for _, p := range trailer {
			h.Add("Trailer", p.Name)
		}
	} else if !bodyless {
		h["Content-Length"] = x.line(lengthLine, strconv.Itoa(len(rec.Body)))
	}
	x.w.WriteHeader(rec.Status)
	if x.r.Method != http.MethodHead && !bodyless {
		_, _ = x.w.Write(rec.Body) // it fails when the client has left
	}
	for _, p := range trailer {
		h.Add(p.Name, p.Value)
	}
}

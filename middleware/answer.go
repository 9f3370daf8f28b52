package middleware

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// answer sends what was found or made.
func (x *exchange) answer(l *lookup, got found) {
	x.res.Result = got.result()
	if got.own != nil && x.answerOwn(l, got) {
		return
	}
	switch err := got.err; {
	case err == nil && got.rec.IsResponse() && got.mine:
		x.send(l, got)
	case err == nil && got.rec.Kind == record.Failed:
		x.fail(http.StatusInternalServerError, "handler-panicked")
	case x.want.OnlyIfCached:
		x.fail(http.StatusGatewayTimeout, "only-if-cached")
	case err == nil && got.rec.Kind == record.PassThrough:
		x.passThroughAs(cachestatus.Forward{Why: l.why, Detail: got.rec.Why()})
	case err == nil || errors.Is(err, cacheguard.ErrNotCached):
		x.passThrough(l.why)
	default:
		x.trouble(l, err)
	}
}

// answerOwn answers a request whose build ran, if nobody else may have the response. It reports whether it
// did.
func (x *exchange) answerOwn(l *lookup, got found) bool {
	own := got.own
	kept := got.err == nil && got.rec.IsResponse() && got.mine && !got.rec.Leftover
	unstored := cachestatus.Forward{Why: l.why, Detail: own.w.Unfit}
	switch {
	case own.unheard && kept && got.rec.Kind == record.Sliced:
		return false // the handler was stopped when it had said how large the page is
	case own.unheard && own.w.IsReleased():
		x.passThroughAs(unstored) // with its Range, or as a HEAD
	case own.wasCutOff() && !own.w.Reached() && (own.interrupted || l.mayStandIn(l.usable(), x.now())):
		x.trouble(l, errInterrupted)
	case own.panicked != nil:
		panic(own.panicked)
	case own.w.Reached():
		x.res.Status, x.res.Route = own.w.Status, own.route // the client has had its response
	case own.confirmed, own.standsIn, kept:
		return false
	case own.unheard:
		x.passThroughAs(unstored)
	default:
		own.w.Release()
		own.w.Finish()
		x.res.Status, x.res.Route = own.w.Status, own.route
	}
	return true
}

// send answers with a stored response: whole, or the part of it that the client wants.
func (x *exchange) send(l *lookup, got found) {
	now, rec, trailer := l.sentAt(got), got.rec, got.trailer()
	if rec.Kind == record.Sliced {
		x.sendSliced(l, got)
		return
	}
	h := x.w.Header()
	x.setHead(h, got)
	if got.own == nil || got.own.standsIn || got.own.confirmed {
		h["Age"] = x.line(ageLine, seconds(rec.Age(now)))
	}
	x.addStatus(x.describe(l, got, now))
	x.res.Status, x.res.Route = rec.Status, rec.Route
	switch {
	case rec.Status != http.StatusOK:
		x.write(rec, trailer)
	case rules.Conditional(x.r) && rules.Unchanged(x.r, rec.Get):
		writer.NotModified(x.w)
		x.res.Status = http.StatusNotModified
	case x.wantsRange() && len(trailer) == 0:
		modified, _ := rules.ParseDate(rec.Get("Last-Modified"), now)
		w := &writer.PassThrough{ResponseWriter: x.w, Before: func(int) {}}
		http.ServeContent(w, rules.WithoutConditions(x.r), "", modified, bytes.NewReader(rec.Body))
		x.res.Status = w.Status
	default:
		x.write(rec, trailer)
	}
}

// trailer is what follows the body: for the client that caused the response, also what may not be stored.
func (f *found) trailer() []record.Pair {
	if f.own == nil || f.own.trailer == nil {
		return f.rec.Trailer
	}
	return record.Pairs(f.own.trailer, func(string) bool { return false })
}

func (x *exchange) wantsRange() bool {
	asked := x.r.Header["Range"]
	return x.r.Method == http.MethodGet && len(asked) > 0 && strings.HasPrefix(asked[0], "bytes=") && !rules.IsLong(asked)
}

// setHead sets the fields of a stored response, and those that its handler meant for this client alone.
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

// The fields that an exchange sets itself, each with one value.
const (
	ageLine = iota
	statusLine
	lengthLine
	ownLines
)

// line returns the value of such a field as a slice, in memory that belongs to the exchange.
func (x *exchange) line(field int, value string) []string {
	x.lines[field] = value
	return x.lines[field : field+1 : field+1]
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

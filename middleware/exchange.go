package middleware

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// exchange is one request and its response. What is not the request belongs to its goroutine.
type exchange struct {
	request

	w       http.ResponseWriter
	began   time.Time // if the request is reported
	res     Response
	checked *lookup // found a mark whose time is up: see mark.go
	reload  *reload // the handler does not have the slices that were found: see large.go

	first attempt          // most requests need no other
	lines [ownLines]string // the values of the fields that the exchange itself sets: see line
}

func (x *exchange) writer() http.ResponseWriter { return x.w }

// report counts the request and calls Config.OnResponse, also when the handler panics.
func (x *exchange) report() {
	x.res.Took = time.Since(x.began)
	if x.res.Result == "" {
		x.res.Result = Failed
	}
	x.cache.count(x.res.Result)
	if x.cache.cfg.OnResponse != nil {
		x.cache.cfg.OnResponse(x.r, x.res)
	}
}

// setStatus adds this cache's member to Cache-Status, for a response of the handler's.
func (x *exchange) setStatus(f cachestatus.Forward) { x.addStatus(x.cache.cfg.Name + f.String()) }

// addStatus adds a member to Cache-Status (RFC 9211), after those of caches behind this one, to a header that is otherwise complete. Then it
// removes what clients are not to see.
func (x *exchange) addStatus(member string) {
	h := x.w.Header()
	defer writer.Hide(h, x.cache.hidden)
	if x.cache.cfg.KeyInStatus {
		member += cachestatus.Key(x.location)
	}
	if before := h["Cache-Status"]; len(before) > 0 {
		member = strings.Join(before, ", ") + ", " + member
	}
	h["Cache-Status"] = x.line(statusLine, member)
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

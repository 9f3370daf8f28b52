package middleware

import (
	"encoding/binary"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// kind says what a record is.
type kind byte

const (
	stored kind = 'r' // a response
	passed kind = 'p' // a response could not be stored: requests go to the handler at once
	failed kind = 'f' // the handler panicked: those who waited for it are told
)

// record is what the Guard keeps for a page: a response with what is needed to judge it, or word that there is none.
type record struct {
	kind     kind
	id       string // variants name the page they belong to by it
	page     string // of a variant: the id of its page
	route    string // pattern of the route that made it
	status   int
	received time.Time
	terms    terms         // as they were when it was received; without what only storing needs
	until    time.Duration // passed: how long after it was received
	standsIn bool          // it is stale, and served because the handler failed
	vary     []pair        // fields that select it, and their values in the request
	versions []pair        // names and values of what it may be invalidated by
	header   []pair
	trailer  []pair
	body     []byte
}

// pair is a name and a value.
type pair struct{ name, value string }

// recordVersion begins every record.
const recordVersion = "h1"

// errRecord is why something in the cache is no record.
var errRecord = errors.New("middleware: no record of this version")

// encode makes the bytes that decodeRecord reads. All that is text goes before the body, which is not copied on reading.
func (e *record) encode() []byte {
	b := make([]byte, 0, 256+len(e.body)+48*len(e.header))
	b = append(b, recordVersion...)
	var text []byte
	text = append(text, byte(e.kind), e.flags())
	for _, s := range []string{e.id, e.page, e.route} {
		text = appendString(text, s)
	}
	for _, n := range []int64{
		int64(e.status), e.received.UnixMilli(), int64(e.until), int64(e.terms.lifetime), int64(e.terms.age),
		int64(e.terms.swr), int64(e.terms.sie),
	} {
		text = binary.AppendVarint(text, n)
	}
	for _, pairs := range [][]pair{e.vary, e.versions, e.header, e.trailer} {
		text = binary.AppendVarint(text, int64(len(pairs)))
		for _, p := range pairs {
			text = appendString(appendString(text, p.name), p.value)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(append(b, text...), e.body...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (e *record) flags() (f byte) {
	for i, set := range []bool{e.terms.noCache, e.terms.strict, e.terms.noStale, e.terms.explicit, e.terms.shared, e.standsIn} {
		if set {
			f |= 1 << i
		}
	}
	return f
}

// decodeRecord reads a record. Its body shares the memory of b. Lines that no header may contain are refused: whatever got
// into Redis, it must not break out of its field.
func decodeRecord(b []byte) (*record, error) {
	if len(b) < len(recordVersion) || string(b[:len(recordVersion)]) != recordVersion {
		return nil, errRecord
	}
	b = b[len(recordVersion):]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) || size < 2 {
		return nil, errRecord
	}
	t := text{rest: string(b[n : n+int(size)])}
	e := &record{kind: kind(t.rest[0]), body: b[n+int(size):]}
	f := t.rest[1]
	e.terms = terms{noCache: f&1 > 0, strict: f&2 > 0, noStale: f&4 > 0, explicit: f&8 > 0, shared: f&16 > 0}
	e.standsIn = f&32 > 0
	t.rest = t.rest[2:]
	e.id, e.page, e.route = t.string(), t.string(), t.string()
	e.status, e.received = int(t.int()), time.UnixMilli(t.int())
	e.until = time.Duration(t.int())
	e.terms.lifetime, e.terms.age = time.Duration(t.int()), time.Duration(t.int())
	e.terms.swr, e.terms.sie = time.Duration(t.int()), time.Duration(t.int())
	e.vary, e.versions, e.header, e.trailer = t.pairs(), t.pairs(), t.pairs(), t.pairs()
	if t.bad || t.rest != "" || !e.valid() {
		return nil, errRecord
	}
	return e, nil
}

// valid reports whether a record may be sent.
func (e *record) valid() bool {
	if e.kind != stored && e.kind != passed && e.kind != failed || e.kind == stored && (e.status < 200 || e.status > 999) {
		return false
	}
	for _, pairs := range [][]pair{e.header, e.trailer} {
		for _, p := range pairs {
			if p.name == "" || strings.ContainsAny(p.value, "\r\n\x00") || strings.ContainsFunc(p.name, notToken) {
				return false
			}
		}
	}
	return true
}

func notToken(r rune) bool { return r > 127 || !isToken(byte(r)) }

// text is the part of a record that is being read.
type text struct {
	rest string
	bad  bool
}

func (t *text) int() int64 {
	n, size := binary.Varint([]byte(t.rest[:min(len(t.rest), binary.MaxVarintLen64)]))
	if size <= 0 {
		t.bad, t.rest = true, ""
		return 0
	}
	t.rest = t.rest[size:]
	return n
}

func (t *text) string() string {
	n, size := binary.Uvarint([]byte(t.rest[:min(len(t.rest), binary.MaxVarintLen64)]))
	if size <= 0 || n > uint64(len(t.rest)-size) {
		t.bad, t.rest = true, ""
		return ""
	}
	s := t.rest[size : size+int(n)]
	t.rest = t.rest[size+int(n):]
	return s
}

func (t *text) pairs() []pair {
	n := t.int()
	if n < 0 || n > int64(len(t.rest)/2) {
		t.bad = true
		return nil
	}
	pairs := make([]pair, n)
	for i := range pairs {
		pairs[i] = pair{t.string(), t.string()}
	}
	return pairs
}

// get returns the value of a field of the header.
func (e *record) get(name string) string {
	for _, p := range e.header {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

// pairs lists the fields of a header in order of their names, so that equal responses are equal records.
func pairs(h http.Header, skip func(name string) bool) (list []pair) {
	for name, values := range h {
		if skip(name) {
			continue
		}
		for _, value := range values {
			list = append(list, pair{name, value})
		}
	}
	slices.SortStableFunc(list, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	return list
}

// headerOf is the header of a record.
func (e *record) headerOf() http.Header {
	h := make(http.Header, len(e.header))
	for _, p := range e.header {
		h[p.name] = append(h[p.name], p.value)
	}
	return h
}

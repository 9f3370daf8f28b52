package record

import (
	"encoding/binary"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unsafe"
)

// version is the first bytes of every record.
const version = "h4"

// errNone says that a value in the cache is no record.
var errNone = errors.New("middleware: no record of this version")

// Encode returns the bytes that Decode reads. The body comes last, so that Decode need not copy it.
func (e *Record) Encode() []byte {
	b := make([]byte, 0, 256+len(e.Body)+48*len(e.Header))
	b = append(b, version...)
	var text []byte
	text = append(text, byte(e.Kind), e.flags())
	for _, s := range []string{e.ID, e.Old, e.Page, e.Location, e.Route} {
		text = appendString(text, s)
	}
	for _, n := range []int64{
		int64(e.Status), e.Received.UnixMilli(), e.Softened, int64(e.Until), int64(e.Variants), int64(e.Terms.Lifetime), int64(e.Terms.Age),
		int64(e.Terms.SWR), int64(e.Terms.SIE),
	} {
		text = binary.AppendVarint(text, n)
	}
	for _, pairs := range [][]Pair{e.Vary, e.Front, e.Header, e.Trailer} {
		text = binary.AppendVarint(text, int64(len(pairs)))
		for _, p := range pairs {
			text = appendString(appendString(text, p.Name), p.Value)
		}
	}
	if e.Kind == Sliced {
		text = appendString(binary.AppendVarint(text, e.Length), e.Parts)
	}
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(append(b, text...), e.Body...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// booleans are the flags of a record, each at its bit.
func (e *Record) booleans() []*bool {
	t := &e.Terms
	return []*bool{&t.NoCache, &t.Strict, &t.NoStale, &t.Explicit, &t.Shared, &e.StandsIn, &e.Leftover}
}

func (e *Record) flags() (f byte) {
	for i, set := range e.booleans() {
		if *set {
			f |= 1 << i
		}
	}
	return f
}

// Decode reads a record, which shares the memory of b: nobody changes that. Decode refuses lines that no header may contain: a value in Redis, wherever
// it comes from, must not break out of its field.
func Decode(b []byte) (*Record, error) {
	if len(b) < len(version) || string(b[:len(version)]) != version {
		return nil, errNone
	}
	raw, b := b, b[len(version):]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) || size < 2 {
		return nil, errNone
	}
	t := text{rest: unsafe.String(&b[n], size)}
	e := &Record{Kind: Kind(t.rest[0]), Body: b[n+int(size):], raw: raw}
	for i, set := range e.booleans() {
		*set = t.rest[1]&(1<<i) > 0
	}
	t.rest = t.rest[2:]
	e.ID, e.Old, e.Page, e.Location, e.Route = t.string(), t.string(), t.string(), t.string(), t.string()
	e.Status, e.Received, e.Softened = int(t.int()), time.UnixMilli(t.int()), t.int()
	e.Until, e.Variants = time.Duration(t.int()), time.Duration(t.int())
	e.Terms.Lifetime, e.Terms.Age = time.Duration(t.int()), time.Duration(t.int())
	e.Terms.SWR, e.Terms.SIE = time.Duration(t.int()), time.Duration(t.int())
	e.Vary, e.Front, e.Header, e.Trailer = t.pairs(), t.pairs(), t.pairs(), t.pairs()
	if e.Kind == Sliced {
		e.Length, e.Parts = t.int(), t.string()
	}
	if t.bad || t.rest != "" || !e.valid() {
		return nil, errNone
	}
	return e, nil
}

// valid reports whether a record may be sent.
func (e *Record) valid() bool {
	switch e.Kind {
	case PassThrough, Moved, Failed:
	case Stored:
		if e.Status < 200 || e.Status > 999 {
			return false
		}
	case Sliced:
		if e.Status != http.StatusOK || e.Length <= 0 || e.Parts == "" || len(e.Body)+len(e.Trailer) > 0 {
			return false
		}
	default:
		return false
	}
	return !slices.ContainsFunc(e.Header, Pair.bad) && !slices.ContainsFunc(e.Trailer, Pair.bad)
}

// bad reports whether no record may have the field: it could break out of its line.
func (p Pair) bad() bool {
	return p.Name == "" || strings.ContainsAny(p.Value, "\r\n\x00") || !IsToken(p.Name)
}

// IsToken reports whether a text consists of characters that a token may have.
func IsToken(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !IsTokenChar(c) })
}

// IsTokenChar reports whether a token may have a character.
func IsTokenChar(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

// text reads the part of a record before its body.
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

func (t *text) pairs() []Pair {
	n := t.int()
	if n < 0 || n > min(maxPairs, int64(len(t.rest)/2)) { // a few bytes must not claim much memory
		t.bad = true
		return nil
	}
	pairs := make([]Pair, n)
	for i := range pairs {
		pairs[i] = Pair{t.string(), t.string()}
	}
	return pairs
}

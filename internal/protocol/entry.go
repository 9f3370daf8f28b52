package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/script"
)

// An entry is the string that Redis holds for a key. Its header is text of fixed width, so that a script can put in
// the time of writing:
//
//	magic    3  "cg1": whose it is, and the version
//	kind     1  what the payload is
//	written 11  server time in ms, hexadecimal; set by the fill script
//	fresh   10  how long the entry is fresh, ms; 0: until Redis expires it
//	took     8  how long the load took, ms
//	sum      8  CRC-32C of the payload
//	id      11  of the load: the first 55 bits of its token
//	payload
const (
	magic      = "cg1"
	writtenAt  = len(magic) + 1
	writtenLen = 11
	freshAt    = writtenAt + writtenLen
	tookAt     = freshAt + 10
	sumAt      = tookAt + 8
	idAt       = sumAt + 8
	idLen      = 11

	// HeaderLen is how many bytes of an entry stand before its payload.
	HeaderLen = idAt + idLen
)

// Kind says what an entry's payload is.
type Kind byte

// The kinds of entries.
const (
	Raw    Kind = 'r' // the bytes of a []byte or string
	Coded  Kind = 'c' // another type, through the Codec
	Absent Kind = 'n' // empty: the source has no such thing
)

// Entry is a decoded entry. Its payload is part of the string it was decoded from.
type Entry struct {
	Kind    Kind
	Written time.Time     // by the server's clock
	Fresh   time.Duration // how long the entry is fresh; 0: until Redis expires it
	Took    time.Duration // how long the load took
	Payload []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Why a string is no entry.
var (
	errForeign   = errors.New("not an entry of this version")
	errTruncated = errors.New("truncated entry")
	errDamaged   = errors.New("damaged entry")
)

// EncodeEntry returns the entry in two parts, between which the fill script puts the time of writing.
func EncodeEntry(k Kind, fresh, took time.Duration, token string, payload []byte) (head string, tail []byte) {
	tail = make([]byte, 0, HeaderLen-freshAt+len(payload))
	tail = fmt.Appendf(tail, "%010x%08x%08x%s",
		min(script.Millis(fresh), 1<<40-1), min(script.Millis(took), 1<<32-1),
		crc32.Checksum(payload, castagnoli), token[:idLen])
	return magic + string(k), append(tail, payload...)
}

// DecodeEntry is the inverse. The entry keeps a part of raw.
func DecodeEntry(raw []byte) (Entry, error) {
	if len(raw) < HeaderLen {
		if bytes.HasPrefix(raw, []byte(magic)) {
			return Entry{}, errTruncated
		}
		return Entry{}, errForeign
	}
	if string(raw[:len(magic)]) != magic {
		return Entry{}, errForeign
	}
	e := Entry{Kind: Kind(raw[len(magic)]), Payload: raw[HeaderLen:]}
	if e.Kind != Raw && e.Kind != Coded && e.Kind != Absent {
		return Entry{}, errForeign
	}
	written, err1 := parseHex(raw[writtenAt:freshAt])
	fresh, err2 := parseHex(raw[freshAt:tookAt])
	took, err3 := parseHex(raw[tookAt:sumAt])
	sum, err4 := parseHex(raw[sumAt:idAt])
	if errors.Join(err1, err2, err3, err4) != nil || uint32(sum) != crc32.Checksum(e.Payload, castagnoli) {
		return Entry{}, errDamaged
	}
	e.Written = time.UnixMilli(written)
	e.Fresh = time.Duration(fresh) * time.Millisecond
	e.Took = time.Duration(took) * time.Millisecond
	return e, nil
}

func parseHex(digits []byte) (int64, error) {
	n, err := strconv.ParseUint(string(digits), 16, 63)
	return int64(n), err
}

package protocol

import (
	"bytes"
	"cmp"
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
//	magic    3  "cg2": whose it is, and the version
//	kind     1  what the payload is
//	packed   1  how the payload is compressed; 'n': it is not
//	written 11  server time in ms, hexadecimal; set by the fill script
//	fresh   10  how long the entry is fresh, ms; 0: until Redis expires it
//	took     8  how long the load took, ms
//	sum      8  CRC-32C of what follows the header
//	id      11  of the load: the first 55 bits of its token
//	stamps   4  how many bytes of stamps follow the header, hexadecimal
//
// Then come the stamps, see Stamps, and the payload.
const (
	magic      = "cg2"
	packedAt   = len(magic) + 1
	writtenAt  = packedAt + 1
	writtenLen = 11
	freshAt    = writtenAt + writtenLen
	tookAt     = freshAt + 10
	sumAt      = tookAt + 8
	idAt       = sumAt + 8
	idLen      = 11
	stampsAt   = idAt + idLen

	// HeaderLen is how many bytes every entry begins with.
	HeaderLen = stampsAt + 4
)

// Kind says what an entry's payload is.
type Kind byte

// The kinds of entries.
const (
	Raw    Kind = 'r' // the bytes of a []byte or string
	Coded  Kind = 'c' // another type, through the Codec
	Absent Kind = 'n' // empty: the source has no such thing
)

// Unpacked says that a payload is not compressed.
const Unpacked = 'n'

// Entry is what Redis holds for a key. The stamps and the payload of a decoded one are parts of the string it was decoded from.
type Entry struct {
	Kind    Kind
	Packed  byte          // how the payload is compressed; 0 is Unpacked when the entry is encoded
	Written time.Time     // by the server's clock; the fill script puts it in
	Fresh   time.Duration // how long the entry is fresh; 0: until Redis expires it
	Took    time.Duration // how long the load took
	Stamps  Stamps        // what it was made under
	Payload []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Why a string is no entry.
var (
	errForeign   = errors.New("not an entry of this version")
	errTruncated = errors.New("truncated entry")
	errDamaged   = errors.New("damaged entry")
)

// EncodeEntry returns the entry of the load with the token in two parts, between which the fill script puts the time of writing.
// The stamps must not be longer than MaxStamps.
func EncodeEntry(e Entry, token string) (head string, tail []byte) {
	sum := crc32.Update(crc32.Checksum(e.Stamps, castagnoli), castagnoli, e.Payload)
	tail = make([]byte, 0, HeaderLen-freshAt+len(e.Stamps)+len(e.Payload))
	tail = fmt.Appendf(tail, "%010x%08x%08x%s%04x",
		min(script.Millis(e.Fresh), 1<<40-1), min(script.Millis(e.Took), 1<<32-1), sum, token[:idLen], len(e.Stamps))
	tail = append(append(tail, e.Stamps...), e.Payload...)
	return magic + string([]byte{byte(e.Kind), cmp.Or(e.Packed, Unpacked)}), tail
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
	e := Entry{Kind: Kind(raw[len(magic)]), Packed: raw[packedAt]}
	if e.Kind != Raw && e.Kind != Coded && e.Kind != Absent {
		return Entry{}, errForeign
	}
	written, err1 := parseHex(raw[writtenAt:freshAt])
	fresh, err2 := parseHex(raw[freshAt:tookAt])
	took, err3 := parseHex(raw[tookAt:sumAt])
	sum, err4 := parseHex(raw[sumAt:idAt])
	stamps, err5 := parseHex(raw[stampsAt:HeaderLen])
	body := raw[HeaderLen:]
	if errors.Join(err1, err2, err3, err4, err5) != nil || uint32(sum) != crc32.Checksum(body, castagnoli) ||
		stamps > int64(len(body)) {
		return Entry{}, errDamaged
	}
	e.Stamps, e.Payload = Stamps(body[:stamps:stamps]), body[stamps:]
	if !e.Stamps.valid() {
		return Entry{}, errDamaged
	}
	e.Written = time.UnixMilli(written)
	e.Fresh = time.Duration(fresh) * time.Millisecond
	e.Took = time.Duration(took) * time.Millisecond
	return e, nil
}

// PackedAs is how the payload of raw is compressed, by its header; Unpacked if raw is no entry.
func PackedAs(raw []byte) byte {
	if len(raw) < HeaderLen || string(raw[:len(magic)]) != magic {
		return Unpacked
	}
	return raw[packedAt]
}

func parseHex(digits []byte) (int64, error) {
	n, err := strconv.ParseUint(string(digits), 16, 63)
	return int64(n), err
}

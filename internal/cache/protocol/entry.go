package protocol

import (
	"cmp"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"time"
	"unsafe"

	"github.com/cacheguard/go/internal/redis/script"
)

// An entry is the string that Redis holds for a key. Numbers have their most significant byte first:
//
//	magic    1  whose it is, and the format: no text in UTF-8 begins so
//	form     1  what the payload is, and which of the parts in [] there are
//	packed   1  how the payload is compressed; 'n': it is not
//	written  6  server time in ms; set by the fill script, as the byte behind it:
//	check    1  the sum of these six bytes, modulo 256; and endsMark, if the entry ends with an intent (see lua/until.lua)
//	fresh    5  how long the entry is fresh, ms; 0: until Redis expires it
//	took     3  how long the load took, ms
//	sum      4  CRC-32C of the user's key, and then of everything but written, check and sum: another key's entry is damage
//	id       7  of the load: the first 56 bits of its token
//
// Then come the Stamp, and the payload:
//
//	prefix   8  the epoch of the Prefix
//	[kind    8  the epoch of the kind that the entry belongs to]
//	[version    of the program, as a varint]
//	tags        how many, as a varint; for each its length, as a varint, its name and its epoch
const (
	magic      = 0xFB
	packedAt   = 2
	writtenAt  = packedAt + 1
	writtenLen = 6 + 1
	freshAt    = writtenAt + writtenLen
	tookAt     = freshAt + 5
	sumAt      = tookAt + 3
	idAt       = sumAt + 4
	idLen      = 7

	endsMark = 85 // is in lua/written.lua and lua/intend.lua, too

	// HeaderLen is how many bytes every entry begins with. They tell it from all others.
	HeaderLen = idAt + idLen
)

// Kind says what an entry's payload is.
type Kind byte

// The kinds of entries.
const (
	Raw    Kind = 1 // the bytes of a []byte or string
	Coded  Kind = 2 // another type, through the Codec
	Absent Kind = 3 // empty: the source has no such thing
)

// The bits of form beside the Kind.
const (
	kindBits   = 3
	ofKind     = 4
	hasVersion = 8
)

// Unpacked says that a payload is not compressed.
const Unpacked = 'n'

// Entry is what Redis holds for a key. The tags and the payload of a decoded one are parts of the string it was decoded
// from.
type Entry struct {
	Kind    Kind
	Packed  byte          // how the payload is compressed; 0 is Unpacked when the entry is encoded
	Written time.Time     // by the server's clock; the fill script puts it in
	Fresh   time.Duration // how long the entry is fresh; 0: until Redis expires it
	Took    time.Duration // how long the load took
	Version int           // of the program that stored it; 0: none
	Ends    bool          // with an intent, maybe before its time: it is read from Redis each time
	Stamp   Stamp         // what it was made under
	Payload []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Why a string is no entry.
var (
	errForeign   = errors.New("not an entry of this version")
	errTruncated = errors.New("truncated entry")
	errDamaged   = errors.New("damaged entry, or another key's")
)

// EncodeEntry returns the key's entry of the load with the token in two parts, between which the fill script puts the
// time of writing.
func EncodeEntry(key string, e Entry, token string) (head string, tail []byte) {
	form := byte(e.Kind)
	if !e.Stamp.Kind.IsZero() {
		form |= ofKind
	}
	if e.Version != 0 {
		form |= hasVersion
	}
	head = string([]byte{magic, form, cmp.Or(e.Packed, Unpacked)})
	tail = make([]byte, 0, HeaderLen+2*EpochLen+2*binary.MaxVarintLen32+len(e.Stamp.Tags)+len(e.Payload)-freshAt)
	tail = appendNumber(tail, script.Millis(e.Fresh), tookAt-freshAt)
	tail = appendNumber(tail, script.Millis(e.Took), sumAt-tookAt)
	tail = append(tail, 0, 0, 0, 0)
	tail = append(tail, idOf(token)...)
	tail = append(tail, e.Stamp.Prefix[:]...)
	if form&ofKind != 0 {
		tail = append(tail, e.Stamp.Kind[:]...)
	}
	if form&hasVersion != 0 {
		tail = binary.AppendUvarint(tail, uint64(e.Version))
	}
	tail = append(e.Stamp.Tags.appendTo(tail), e.Payload...)
	binary.BigEndian.PutUint32(tail[sumAt-freshAt:], sumOf(key, []byte(head), tail[:sumAt-freshAt], tail[idAt-freshAt:]))
	return head, tail
}

// DecodeEntry is the inverse. The entry keeps a part of raw.
func DecodeEntry(key string, raw []byte) (Entry, error) {
	if len(raw) == 0 || raw[0] != magic {
		return Entry{}, errForeign
	}
	if len(raw) < HeaderLen+EpochLen+1 {
		return Entry{}, errTruncated
	}
	form, check := raw[1], byte(0)
	for _, b := range raw[writtenAt : freshAt-1] {
		check += b
	}
	e := Entry{Kind: Kind(form & kindBits), Packed: raw[packedAt]}
	e.Ends = raw[freshAt-1] == check+endsMark
	if check != raw[freshAt-1] && !e.Ends || e.Kind == 0 || form > kindBits|ofKind|hasVersion ||
		binary.BigEndian.Uint32(raw[sumAt:]) != checksum(key, raw) {
		return Entry{}, errDamaged
	}
	e.Written = time.UnixMilli(number(raw[writtenAt : freshAt-1]))
	e.Fresh = time.Duration(number(raw[freshAt:tookAt])) * time.Millisecond
	e.Took = time.Duration(number(raw[tookAt:sumAt])) * time.Millisecond
	body := raw[HeaderLen:]
	e.Stamp.Prefix, body = takeEpoch(body)
	if form&ofKind != 0 {
		e.Stamp.Kind, body = takeEpoch(body)
	}
	if form&hasVersion != 0 {
		var version uint64
		version, body = takeVarint(body)
		e.Version = int(version)
	}
	var ok bool
	if e.Stamp.Tags, e.Payload, ok = takeTags(body); !ok {
		return Entry{}, errDamaged // and was damaged when the sum was made
	}
	return e, nil
}

// checksum computes the sum of the key's entry.
func checksum(key string, raw []byte) uint32 {
	return sumOf(key, raw[:writtenAt], raw[freshAt:sumAt], raw[idAt:])
}

// sumOf is the checksum of the key and the parts.
func sumOf(key string, parts ...[]byte) uint32 {
	sum := crc32.Update(0, castagnoli, unsafe.Slice(unsafe.StringData(key), len(key))) // only read; a conversion would copy it
	for _, part := range parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// PackedAs is how the payload of raw is compressed, by its header; Unpacked if raw is no entry.
func PackedAs(raw []byte) byte {
	if len(raw) < HeaderLen || raw[0] != magic {
		return Unpacked
	}
	return raw[packedAt]
}

// idOf is what an entry has of its load's token.
func idOf(token string) []byte {
	var id [10]byte
	if _, err := base32.StdEncoding.Decode(id[:], []byte(token[:min(len(token), 16)])); err != nil {
		copy(id[:], token) // no text of ours
	}
	return slices.Clone(id[:idLen])
}

// appendNumber appends a number in so many bytes; one that is too large as the largest.
func appendNumber(to []byte, n int64, size int) []byte {
	n = min(max(n, 0), 1<<(8*size)-1)
	for shift := 8 * (size - 1); shift >= 0; shift -= 8 {
		to = append(to, byte(n>>shift))
	}
	return to
}

func number(from []byte) (n int64) {
	for _, b := range from {
		n = n<<8 | int64(b)
	}
	return n
}

// Package packing makes entries smaller, and bounds how large they are.
package packing

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/run/config"
)

// Compression is cacheguard.Compression.
type Compression interface {
	Formats() string
	Compress(payload []byte) []byte
	Decompress(format byte, packed []byte, limit int) ([]byte, error)
}

// Packing is how a Guard packs entries.
type Packing struct {
	By       Compression // nil: not at all
	MaxBytes int         // of a value, encoded; config.Off: any
}

// largestString is the size of the largest string that Redis stores.
const largestString = 512 << 20

// reads reports whether entries in the format can be read.
func (p Packing) reads(format byte) bool {
	return format == protocol.Unpacked || p.By != nil && strings.IndexByte(p.By.Formats(), format) >= 0
}

// Pack compresses the payload of an entry if that makes it smaller. It does not compress a replacement for an entry,
// unfit, in a format that this instance cannot read: others can read that format, and may not read this instance's.
func (p Packing) Pack(e protocol.Entry, unfit []byte) (protocol.Entry, error) {
	if p.By == nil || len(e.Payload) == 0 || !p.reads(protocol.PackedAs(unfit)) {
		return e, nil
	}
	packed, err := p.compress(e.Payload)
	if packed != nil && len(packed) < len(e.Payload) {
		e.Packed, e.Payload = p.By.Formats()[0], packed
	}
	return e, err
}

// compress has a goroutine for the Compression, which may call runtime.Goexit: the caller has a lease or a lock to give
// up.
func (p Packing) compress(payload []byte) (packed []byte, err error) {
	done := make(chan struct{})
	go func() { // owner: compress, which waits for it
		defer close(done)
		defer recoverCompression(&err)
		err = errGoexit
		packed, err = p.By.Compress(payload), nil
	}()
	<-done
	return packed, err
}

var errGoexit = errors.New("compression called runtime.Goexit")

// Decode is protocol.DecodeEntry, refuses what is too large, and decompresses the payload. If that fails, it is no
// entry.
func (p Packing) Decode(key string, raw []byte) (protocol.Entry, error) {
	if len(raw) > p.Largest() {
		return protocol.Entry{}, errLargeEntry
	}
	e, err := protocol.DecodeEntry(key, raw)
	if err == nil && e.Packed != protocol.Unpacked {
		if e.Payload, err = p.decompress(e.Packed, e.Payload); err != nil {
			return protocol.Entry{}, err
		}
	}
	return e, err
}

var errTooLarge = errors.New("it is larger than MaxValueBytes when it is decompressed")

func (p Packing) decompress(format byte, packed []byte) (payload []byte, err error) {
	defer recoverCompression(&err)
	if !p.reads(format) {
		return nil, fmt.Errorf("entry is compressed in format %q, which Config.Compression does not read", format)
	}
	limit := p.MaxBytes
	if limit == config.Off {
		limit = largestString
	}
	payload, err = p.By.Decompress(format, packed, limit)
	if err == nil && len(payload) > limit {
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("compressed entry: %w", err)
	}
	return payload[:len(payload):len(payload)], nil
}

// recoverCompression turns a panic of a Compression into an error: it must not take down callers that only share
// its work.
func recoverCompression(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("compression panicked: %v", r)
	}
}

const (
	entryOverhead = 80 << 10 // more than an entry has beside its payload
	largeHead     = 1 << 10  // what is remembered of a value that is too large
)

var errLargeEntry = errors.New("it is larger than an entry of MaxValueBytes")

// Largest is how many bytes an entry has at most. Values of other sizes were not stored by a Guard with this Packing.
func (p Packing) Largest() int {
	if p.MaxBytes == config.Off {
		return math.MaxInt
	}
	return p.MaxBytes + entryOverhead
}

// Unfit is what a rebuild remembers of a value that it replaces: not all of one that is too large.
func (p Packing) Unfit(raw []byte) []byte {
	if len(raw) > p.Largest() {
		return bytes.Clone(raw[:largeHead])
	}
	return raw
}

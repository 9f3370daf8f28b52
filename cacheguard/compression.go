package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cacheguard/go/internal/protocol"
)

// Compression makes stored entries smaller. Module github.com/cacheguard/go/codec has two. Its methods are called
// concurrently.
//
// An entry names its format, so a fleet may mix instances with different Compression, and change it without a flush. An
// instance that cannot read a format loads the value, and replaces the entry by an uncompressed one, which all can read. So
// instances do not keep overwriting each other's entries.
type Compression interface {
	// Formats lists the formats that Decompress reads, each a letter from a to z, except n. Compress writes the
	// first one.
	Formats() string

	// Compress returns the payload compressed, or nil to have it stored as it is. It must neither change nor keep the payload.
	Compress(payload []byte) []byte

	// Decompress reverses Compress of one of the Formats. If the result had more than limit bytes, it returns an error.
	// It must not allocate more than that either, as the size that the data claims may be wrong. The result belongs to
	// the caller.
	Decompress(format byte, packed []byte, limit int) ([]byte, error)
}

// largestString is the size of the largest string that Redis stores.
const largestString = 512 << 20

func checkCompression(c Compression, bad func(field, format string, args ...any)) {
	if c == nil {
		return
	}
	formats := c.Formats()
	if formats == "" {
		bad("Compression", "it has no format")
	}
	for _, f := range formats {
		if f < 'a' || f > 'z' || f == protocol.Unpacked {
			bad("Compression", "its format %q is not a letter from a to z, or is n", f)
		}
	}
}

// readsFormat reports whether entries in the format can be read.
func (c *Config) readsFormat(format byte) bool {
	return format == protocol.Unpacked || c.Compression != nil && strings.IndexByte(c.Compression.Formats(), format) >= 0
}

// pack compresses the payload of an entry if that makes it smaller. It does not compress a replacement for an entry in a
// format that this instance cannot read: others can read that format, and may not read this instance's.
func (r *rebuild) pack(ctx context.Context, e protocol.Entry) protocol.Entry {
	cfg := &r.guard.cfg
	if cfg.Compression == nil || len(e.Payload) == 0 || !cfg.readsFormat(protocol.PackedAs(r.unfit)) {
		return e
	}
	packed, err := cfg.compress(e.Payload)
	if err != nil {
		r.guard.journal.Uncompressed(ctx, r.job.key, err)
	}
	if packed != nil && len(packed) < len(e.Payload) {
		e.Packed, e.Payload = cfg.Compression.Formats()[0], packed
	}
	return e
}

func (c *Config) compress(payload []byte) (packed []byte, err error) {
	defer recoverCompression(&err)
	return c.Compression.Compress(payload), nil
}

// decodeEntry is protocol.DecodeEntry, refuses what is too large, and decompresses the payload. If that fails, it is no entry.
func (c *Config) decodeEntry(raw []byte) (protocol.Entry, error) {
	if len(raw) > c.largestEntry() {
		return protocol.Entry{}, errLargeEntry
	}
	e, err := protocol.DecodeEntry(raw)
	if err == nil && e.Packed != protocol.Unpacked {
		if e.Payload, err = c.decompress(e.Packed, e.Payload); err != nil {
			return protocol.Entry{}, err
		}
	}
	return e, err
}

var errTooLarge = errors.New("it is larger than MaxValueBytes when it is decompressed")

func (c *Config) decompress(format byte, packed []byte) (payload []byte, err error) {
	defer recoverCompression(&err)
	if !c.readsFormat(format) {
		return nil, fmt.Errorf("entry is compressed in format %q, which Config.Compression does not read", format)
	}
	limit := c.MaxValueBytes
	if limit == off {
		limit = largestString
	}
	payload, err = c.Compression.Decompress(format, packed, limit)
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

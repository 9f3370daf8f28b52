package cacheguard

import (
	"context"
	"encoding/json"

	"github.com/cacheguard/go/internal/packing"
	"github.com/cacheguard/go/internal/protocol"
)

// Codec turns values into bytes and back. []byte and string values never pass through it.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error // v is a pointer
}

// jsonCodec is the default.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

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

// packing says how entries are packed, and how large they may be.
func (c *Config) packing() packing.Packing {
	return packing.Packing{By: c.Compression, MaxBytes: c.MaxValueBytes}
}

// pack compresses the payload of an entry, if that can be done.
func (r *rebuild) pack(ctx context.Context, e protocol.Entry) protocol.Entry {
	e, err := r.guard.cfg.packing().Pack(e, r.unfit)
	if err != nil {
		r.guard.journal.Uncompressed(ctx, r.job.key, err)
	}
	return e
}

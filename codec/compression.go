package codec

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// The formats, as entries name them.
const (
	formatZstd = 'z'
	formatS2   = 's'
)

// maxScratch is the largest buffer that is kept for the next payload.
const maxScratch = 4 << 20

var (
	errTooLarge = errors.New("codec: it is larger than the limit when it is decompressed")
	errNoSize   = errors.New("codec: it does not say how large it is when it is decompressed")
)

// Compression is a cacheguard.Compression. It writes one format and reads all of this package. It is safe for concurrent use, may
// be used by many Guards, and starts no goroutine.
type Compression struct {
	formats  string
	min      int
	scratch  sync.Pool // of *[]byte
	encoders sync.Pool // of *zstd.Encoder
	decoders sync.Pool // of *zstd.Decoder
}

// Zstd compresses payloads of at least minBytes with Zstandard (RFC 8878), at about the speed and size of level 3.
func Zstd(minBytes int) *Compression { return &Compression{formats: "zs", min: minBytes} }

// S2 compresses payloads of at least minBytes with S2, an extension of Snappy. It is several times as fast as Zstd, with
// larger results.
func S2(minBytes int) *Compression { return &Compression{formats: "sz", min: minBytes} }

// Formats returns the letters that entries name the formats by.
func (c *Compression) Formats() string { return c.formats }

// Compress returns the payload compressed, or nil if it is shorter than min or does not get smaller.
func (c *Compression) Compress(payload []byte) []byte {
	if len(payload) < c.min || len(payload) == 0 {
		return nil
	}
	room, _ := c.scratch.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	defer func() {
		if cap(*room) <= maxScratch {
			c.scratch.Put(room)
		}
	}()
	if c.formats[0] == formatS2 {
		*room = s2.Encode((*room)[:cap(*room)], payload)
	} else if !c.zstd(room, payload) {
		return nil
	}
	if len(*room) >= len(payload) {
		return nil
	}
	return bytes.Clone(*room)
}

// zstd compresses into the room. Entries have a checksum of their own.
func (c *Compression) zstd(room *[]byte, payload []byte) bool {
	enc, _ := c.encoders.Get().(*zstd.Encoder)
	if enc == nil {
		var err error
		enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
		if err != nil {
			return false // no option is out of range
		}
	}
	defer c.encoders.Put(enc)
	*room = enc.EncodeAll(payload, (*room)[:0])
	return true
}

// Decompress returns the payload that was compressed in the format, or an error if that has more than limit bytes. It
// allocates the size that the data claims, if that is within the limit, and no more while it decompresses.
func (c *Compression) Decompress(format byte, packed []byte, limit int) ([]byte, error) {
	switch format {
	case formatS2:
		return unpackS2(packed, limit)
	case formatZstd:
		return c.unpackZstd(packed, limit)
	}
	return nil, fmt.Errorf("codec: unknown format %q", format)
}

func unpackS2(packed []byte, limit int) ([]byte, error) {
	size, err := s2.DecodedLen(packed)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, errTooLarge
	}
	return s2.Decode(make([]byte, size), packed)
}

func (c *Compression) unpackZstd(packed []byte, limit int) ([]byte, error) {
	var header zstd.Header
	if err := header.Decode(packed); err != nil {
		return nil, err
	}
	switch {
	case header.Skippable || !header.HasFCS:
		return nil, errNoSize
	case header.FrameContentSize > uint64(max(limit, 0)):
		return nil, errTooLarge
	}
	dec, _ := c.decoders.Get().(*zstd.Decoder)
	if dec == nil {
		var err error
		dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderMaxWindow(512<<20))
		if err != nil {
			return nil, err
		}
	}
	defer c.decoders.Put(dec)
	return dec.DecodeAll(packed, make([]byte, 0, header.FrameContentSize))
}

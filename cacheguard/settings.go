package cacheguard

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
)

// LocalConfig describes a tier in the process, off unless MaxBytes or MaxEntries is set. Invalidations reach it by
// messages, usually within a millisecond: docs/guarantees.md has the limits. Loaders, and calls with the context of an
// Intent or a write, get nothing from it. It keeps only what a Guard with a tier, StaleFor or EarlyRefresh stored.
type LocalConfig struct {
	// MaxBytes bounds the tier by its keys, encoded values and 256 bytes for each. Decoded values may take more.
	MaxBytes int

	// MaxEntries bounds the number of its entries.
	MaxEntries int

	// TTL bounds how long a value stays after it was read from Redis. At least a millisecond. Default: 5 seconds.
	TTL time.Duration

	// MaxLag is how old the tier's answers may be: none is of a key invalidated longer ago. While no message proves
	// that, Redis is asked. At least 100 milliseconds. Default: 1 second. -1: TTL, unchecked.
	MaxLag time.Duration

	// HotKeys limits the tier to that many keys, those asked for most here in the last seconds, about thirty times or
	// more. Default: 0, all keys.
	HotKeys int
}

func (c *LocalConfig) on() bool { return c.MaxBytes > 0 || c.MaxEntries > 0 }

func (c *LocalConfig) check(bad func(field, format string, args ...any)) {
	switch {
	case c.MaxBytes < 0:
		bad("Local.MaxBytes", "%d is negative", c.MaxBytes)
	case c.MaxEntries < 0:
		bad("Local.MaxEntries", "%d is negative", c.MaxEntries)
	case c.MaxBytes > 0 && c.MaxEntries > 0:
		bad("Local", "MaxBytes and MaxEntries are both set")
	case !c.on() && (c.TTL != 0 || c.MaxLag != 0 || c.HotKeys != 0):
		bad("Local", "set MaxBytes or MaxEntries, or nothing")
	}
	if c.TTL < 0 || c.TTL > 0 && c.TTL < time.Millisecond {
		bad("Local.TTL", "%v is shorter than a millisecond (is the unit missing?)", c.TTL)
	}
	if c.MaxLag != off && (c.MaxLag < 0 || c.MaxLag > 0 && c.MaxLag < shortestLag) {
		bad("Local.MaxLag", "%v is neither -1 nor at least %v", c.MaxLag, shortestLag)
	}
	if c.HotKeys < 0 {
		bad("Local.HotKeys", "%d is negative", c.HotKeys)
	}
}

const (
	defaultLocalTTL = 5 * time.Second
	defaultMaxLag   = time.Second
	shortestLag     = 100 * time.Millisecond
)

// WriteLock is a lock that Update can hold: a *mutex.Locker, a *mutex.Quorum, or a Locker of a package below consensus.
// The Guard does not close it.
type WriteLock interface {
	// DoFenced waits for the lock of the name until ctx ends, and calls f while it holds it. The context of f ends when
	// ctx does, and when the lock is lost. The fence is greater than each earlier holder's. It returns f's error,
	// joined with the lock's, as package mutex returns them.
	DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error
}

// Codec turns values other than []byte and string into bytes and back. What it does not decode is loaded again.
// codec.Checked finds what comes back otherwise.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error // v is a pointer
}

// jsonCodec is the default.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// Compression makes stored entries smaller: module github.com/cacheguard/go/codec has two. Its methods are called
// concurrently. A fleet may mix formats.
type Compression interface {
	// Formats lists the formats that Decompress reads, each a letter from a to z, except n. Compress writes the first.
	Formats() string

	// Compress returns the payload compressed, or nil: store it as it is. It neither changes nor keeps the payload.
	Compress(payload []byte) []byte

	// Decompress reverses Compress of one of the Formats. A result of more than limit bytes is an error, and not
	// allocated.
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

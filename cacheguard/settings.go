package cacheguard

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
)

// LocalConfig describes a tier in the process. It is off unless MaxBytes or MaxEntries is set. Invalidations reach it
// by messages, usually within a millisecond: docs/guarantees.md has the limits. Loaders, and calls with the context of
// an Intent or a write, get nothing from it. It only keeps entries that a Guard with a tier, StaleFor or EarlyRefresh
// stored.
type LocalConfig struct {
	// MaxBytes bounds the tier by the size of its keys and encoded values, with 256 bytes added for each. Decoded
	// values may take more than that.
	MaxBytes int

	// MaxEntries bounds the tier by the number of its entries.
	MaxEntries int

	// TTL is how long a value stays in the tier, at most, after it was read from Redis. At least a millisecond.
	// Default: 5 seconds.
	TTL time.Duration

	// MaxLag is how old the tier's answers may be: none is of a key that was invalidated so long ago, or before. That is
	// checked by messages, twice in this time; while none comes back, Redis is asked, as on a server whose scripts may
	// not publish. At least 100 milliseconds; -1: as long as TTL, unchecked. Default: 1 second.
	MaxLag time.Duration

	// HotKeys limits the tier to that many keys: the ones this process asked for most in the last seconds, if it asked
	// for them about thirty times or more. Default: 0, all keys.
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

// WriteLock is a lock that Update can hold, such as *mutex.Locker, *mutex.Quorum, and the Lockers of consensus/etcd,
// consensus/zookeeper, consensus/postgres and consensus/mysql.
type WriteLock interface {
	// DoFenced waits for the lock of the name until ctx ends, and calls f while it holds it. The context of f ends when
	// ctx does, and when the lock is lost. The fence is greater than each earlier holder's. It returns f's error,
	// joined with any error of the lock, as package mutex returns them.
	DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error
}

// Codec turns values into bytes and back; []byte and string values never pass through it. The callers of a load get
// what the loader returned, and others what comes back from the Codec: cacheguardtest and codec.Checked find what
// differs. A value that it does not decode is a damaged entry (EventDamaged), and each Get of it loads.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error // v is a pointer
}

// jsonCodec is the default.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// Compression makes stored entries smaller. Module github.com/cacheguard/go/codec has two. Its methods are called
// concurrently. An entry names its format, so a fleet may mix and change them without a flush; an instance that cannot
// read a format loads, and stores uncompressed.
type Compression interface {
	// Formats lists the formats that Decompress reads, each a letter from a to z, except n. Compress writes the
	// first one.
	Formats() string

	// Compress returns the payload compressed, or nil to have it stored as it is. It must neither change nor keep the
	// payload.
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

package cas

import (
	"encoding/json"
	"time"

	"github.com/cacheguard/go/internal/run/config"
)

// Config says how a Store behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so.
type Config struct {
	// Prefix begins every key in Redis: the value of key K is at Prefix:{K}:cas. Stores with the same Prefix on the same Redis
	// share their values; they must agree on types and Codec. It may not contain braces. Default: cas.
	Prefix string

	// TTL is how long a value lives after its last write, to the millisecond, at most 10 years. Default: 24 hours, so
	// that forgotten values do not stay for ever. -1: values do not expire.
	TTL time.Duration

	// MaxAttempts is how often Update tries before it returns ErrConflict. Default: 32. -1: until its context ends.
	MaxAttempts int

	// RedisTimeout bounds each operation on Redis, whatever the client's own time-outs and retries. Default: 500 ms.
	RedisTimeout time.Duration

	// Codec encodes values other than []byte and string. Default: encoding/json.
	Codec Codec
}

// Codec turns values into bytes and back. []byte and string values never pass through it.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error // v is a pointer
}

// jsonCodec is the default.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

const (
	defaultPrefix      = "cas"
	defaultTTL         = 24 * time.Hour
	defaultMaxAttempts = 32
)

// off is the value that switches a feature off.
const off = config.Off

// check returns one error that names every field that is out of range.
func (c *Config) check() error {
	var p config.Problems
	p.Prefix(c.Prefix)
	if c.MaxAttempts < off {
		p.Add("MaxAttempts", "%d is negative (use -1 for no limit)", c.MaxAttempts)
	}
	p.Life(c.TTL)
	p.RedisTimeout(c.RedisTimeout)
	return p.Err()
}

func (c Config) withDefaults() Config {
	config.SetDefault(&c.Prefix, defaultPrefix)
	config.SetDefault(&c.TTL, defaultTTL)
	config.SetDefault(&c.MaxAttempts, defaultMaxAttempts)
	config.SetDefault(&c.RedisTimeout, config.DefaultRedisTimeout)
	c.TTL = max(c.TTL, 0) // 0: none
	config.SetDefault(&c.Codec, Codec(jsonCodec{}))
	return c
}

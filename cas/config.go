package cas

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config says how a Store behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so.
type Config struct {
	// Prefix begins every key in Redis: the value of key K is at Prefix:{K}. Stores with the same Prefix on the same Redis
	// share their values; they must agree on types and Codec. It may not contain braces. Default: cas.
	Prefix string

	// TTL is how long a value lives after it was written last. Milliseconds count, at most 10 years. Default: 24 hours, so
	// that what is forgotten does not stay for ever. -1: values do not expire.
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
	defaultPrefix       = "cas"
	defaultTTL          = 24 * time.Hour
	defaultMaxAttempts  = 32
	defaultRedisTimeout = 500 * time.Millisecond
)

// off is the value that switches a feature off.
const off = -1

const longest = 10 * 365 * 24 * time.Hour

// check returns one error that names every field that is out of range.
func (c *Config) check() error {
	var problems []error
	bad := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("Config.%s: "+format, append([]any{field}, args...)...))
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		bad("Prefix", "%q contains a brace", c.Prefix)
	}
	if c.TTL != 0 && c.TTL != off && (c.TTL < time.Millisecond || c.TTL > longest) {
		bad("TTL", "%v is not between a millisecond and 10 years (use -1 for no limit)", c.TTL)
	}
	if c.MaxAttempts < off {
		bad("MaxAttempts", "%d is negative (use -1 for no limit)", c.MaxAttempts)
	}
	if c.RedisTimeout != 0 && (c.RedisTimeout < time.Millisecond || c.RedisTimeout > longest) {
		bad("RedisTimeout", "%v is not between a millisecond and 10 years", c.RedisTimeout)
	}
	return errors.Join(problems...)
}

func (c Config) withDefaults() Config {
	setDefault(&c.Prefix, defaultPrefix)
	setDefault(&c.TTL, defaultTTL)
	setDefault(&c.MaxAttempts, defaultMaxAttempts)
	setDefault(&c.RedisTimeout, defaultRedisTimeout)
	c.TTL = max(c.TTL, 0) // 0: none
	if c.Codec == nil {
		c.Codec = jsonCodec{}
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

package segment

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config says how a Counter behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so.
type Config struct {
	// Prefix begins every key in Redis: segment I of name N is at Prefix:{I.X/N}, with an X that brings it into the I-th part
	// of the cluster's slots. Counters with the same Prefix and the same number of Segments on the same Redis share
	// their units. It may not contain braces. Default: segment.
	Prefix string

	// Segments is over how many keys a name is split. Everybody must agree on it: with another number, it is another
	// counter. From 1 to 64; two to four for each node of a cluster are enough. On one server, 1. Default: 8.
	Segments int

	// TTL is how long a name lives after Create; nothing extends it. Milliseconds count, at most 10 years. Default: 24 hours.
	// -1: it does not expire.
	TTL time.Duration

	// RedisTimeout bounds each operation on Redis, whatever the client's own time-outs and retries. Default: 500 ms.
	RedisTimeout time.Duration
}

const (
	defaultPrefix       = "segment"
	defaultSegments     = 8
	maxSegments         = 64
	defaultTTL          = 24 * time.Hour
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
	if c.Segments < 0 || c.Segments > maxSegments {
		bad("Segments", "%d is not between 1 and %d", c.Segments, maxSegments)
	}
	if c.TTL != 0 && c.TTL != off && (c.TTL < time.Millisecond || c.TTL > longest) {
		bad("TTL", "%v is not between a millisecond and 10 years (use -1 for no limit)", c.TTL)
	}
	if c.RedisTimeout != 0 && (c.RedisTimeout < time.Millisecond || c.RedisTimeout > longest) {
		bad("RedisTimeout", "%v is not between a millisecond and 10 years", c.RedisTimeout)
	}
	return errors.Join(problems...)
}

func (c Config) withDefaults() Config {
	setDefault(&c.Prefix, defaultPrefix)
	setDefault(&c.Segments, defaultSegments)
	setDefault(&c.TTL, defaultTTL)
	setDefault(&c.RedisTimeout, defaultRedisTimeout)
	c.TTL = max(c.TTL, 0) // 0: none
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

package segment

import (
	"time"

	"github.com/cacheguard/go/internal/run/config"
)

// Config says how a Counter behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so.
type Config struct {
	// Prefix begins every key in Redis: segment I of name N is at Prefix:{I.X/N}:segment, with an X that brings it into the I-th part
	// of the cluster's slots. Counters with the same Prefix and the same number of Segments on the same Redis share
	// their units. It may not contain braces. Default: segment.
	Prefix string

	// Segments is the number of Redis keys that a counter is split across. All users of a counter must agree on it: with
	// another number, it is another counter. From 1 to 64; two to four for each node of a cluster are enough. On one server, 1. Default: 8.
	Segments int

	// TTL is how long a name lives after Create, to the millisecond, at most 10 years; nothing extends it. Default: 24
	// hours. -1: it does not expire.
	TTL time.Duration

	// RedisTimeout bounds each operation on Redis, whatever the client's own time-outs and retries. Default: 500 ms.
	RedisTimeout time.Duration
}

const (
	defaultPrefix   = "segment"
	defaultSegments = 8
	maxSegments     = 64
	defaultTTL      = 24 * time.Hour
)

// check returns one error that names every field that is out of range.
func (c *Config) check() error {
	var p config.Problems
	p.Prefix(c.Prefix)
	if c.Segments < 0 || c.Segments > maxSegments {
		p.Add("Segments", "%d is not between 1 and %d", c.Segments, maxSegments)
	}
	p.Life(c.TTL)
	p.RedisTimeout(c.RedisTimeout)
	return p.Err()
}

func (c Config) withDefaults() Config {
	config.SetDefault(&c.Prefix, defaultPrefix)
	config.SetDefault(&c.Segments, defaultSegments)
	config.SetDefault(&c.TTL, defaultTTL)
	config.SetDefault(&c.RedisTimeout, config.DefaultRedisTimeout)
	c.TTL = max(c.TTL, 0) // 0: none
	return c
}

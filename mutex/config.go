package mutex

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config says how a Locker behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so.
type Config struct {
	// Prefix begins every key in Redis: the lock of name N is at Prefix:{N}. Lockers with the same Prefix on the same
	// Redis exclude one another. It may not contain braces. Default: lock.
	Prefix string

	// TTL is the length of a lease: how long a lock outlives a holder that died. From 100 milliseconds to 10 years.
	// Milliseconds count. Default: 10 seconds.
	TTL time.Duration

	// Watchdog renews the leases at a third of TTL, until they are unlocked. Default: on. -1: a lease ends TTL after it
	// began unless Extend is called.
	Watchdog int

	// MaxHold ends a lease that was held for so long, as if it had been lost. It is for holders that hang while the
	// watchdog goes on. Redis gives the lock to another at most TTL later. At least TTL. Default: no limit.
	MaxHold time.Duration

	// Fair makes waiters get the lock strictly in the order in which they asked, across all processes that set it. It costs
	// a request for each waiter. Otherwise the waiters of one process share a place, and may hand the lock on among
	// themselves a few times before another process gets it. Default: false.
	Fair bool

	// RedisTimeout bounds each operation on Redis, whatever the client's own time-outs and retries. Default: 500 ms.
	RedisTimeout time.Duration
}

const (
	defaultPrefix       = "lock"
	defaultTTL          = 10 * time.Second
	minTTL              = 100 * time.Millisecond
	defaultRedisTimeout = 500 * time.Millisecond
)

// off is the value that switches a feature off.
const off = -1

// longest is the longest lease there is.
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
	if c.TTL != 0 && (c.TTL < minTTL || c.TTL > longest) {
		bad("TTL", "%v is not between %v and 10 years", c.TTL, minTTL)
	}
	if c.Watchdog != 0 && c.Watchdog != off {
		bad("Watchdog", "%d is neither 0 nor -1", c.Watchdog)
	}
	if ttl := c.withDefaults().TTL; c.MaxHold != 0 && c.MaxHold != off && (c.MaxHold < ttl || c.MaxHold > longest) {
		bad("MaxHold", "%v is not between TTL (%v) and 10 years", c.MaxHold, ttl)
	}
	if c.RedisTimeout != 0 && (c.RedisTimeout < time.Millisecond || c.RedisTimeout > longest) {
		bad("RedisTimeout", "%v is not between a millisecond and 10 years", c.RedisTimeout)
	}
	return errors.Join(problems...)
}

func (c Config) withDefaults() Config {
	setDefault(&c.Prefix, defaultPrefix)
	setDefault(&c.TTL, defaultTTL)
	setDefault(&c.RedisTimeout, defaultRedisTimeout)
	c.MaxHold = max(c.MaxHold, 0)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

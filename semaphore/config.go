package semaphore

import (
	"time"

	"github.com/cacheguard/go/internal/run/config"
)

// Config says how a Locker behaves. In every field but Permits 0 means the default, and -1 switches the feature off where the
// field says so.
type Config struct {
	// Prefix begins every key in Redis: the semaphore of name N is at Prefix:{N}:sem. Lockers with the same Prefix on the same
	// Redis share permits. It may not contain braces. A name has 1 to 65,536 bytes. Default: lock.
	Prefix string

	// Permits is how many may hold a semaphore at once, for each name. From 1 to 10,000; there is no default. Lockers that share
	// a semaphore may differ, as they do while a new number is deployed: the package comment says what happens then.
	Permits int

	// Instance is the name of this process. The Tokens of its leases end with it, after an @, so that Inspect can say who holds a
	// permit. At most 50 bytes, without spaces and control characters. Default: host:pid.
	Instance string

	// TTL is the length of a lease: how long a permit outlives a holder that died. Those with the same Prefix may differ.
	// From 100 milliseconds to 10 years. Milliseconds count. Default: 10 seconds.
	TTL time.Duration

	// FixedLease ends a lease TTL after it began, unless Extend is called. Default: false, a watchdog renews leases at a third of TTL,
	// until they are unlocked.
	FixedLease bool

	// MaxHold ends a lease that was held for that long, as if it had been lost. It is for holders that hang
	// while the watchdog goes on. Redis gives the permit to others at most TTL later. At least TTL. Default and -1: no limit.
	MaxHold time.Duration

	// WithoutRedis is how many permits of each name this process hands out by itself while Redis cannot be reached, for work that should
	// rather go on than stop. The fleet may then have as many as that in each process, beside permits that were taken before. With a
	// watchdog, their leases last until they are unlocked. Up to 10,000. Default: 0, none, so that calls return an error.
	WithoutRedis int

	// RedisTimeout bounds each operation on Redis, whatever the client's own time-outs and retries. Default: 500 ms.
	RedisTimeout time.Duration

	// Hooks are called as things happen, for metrics and tests.
	Hooks Hooks
}

// common has the fields that other kinds of locks have too, and whose ranges and defaults are the same for all.
func (c *Config) common() config.Lock {
	return config.Lock{
		Prefix: c.Prefix, Instance: c.Instance, TTL: c.TTL, FixedLease: c.FixedLease, MaxHold: c.MaxHold,
		RedisTimeout: c.RedisTimeout, Hooks: config.Hooks(c.Hooks),
	}
}

const mostPermits = 10_000

// check returns one error that names every other field that is out of range.
func (c *Config) check() error {
	var p config.Problems
	if c.Permits < 1 || c.Permits > mostPermits {
		p.Add("Permits", "%d is not between 1 and %d", c.Permits, mostPermits)
	}
	if c.WithoutRedis < 0 || c.WithoutRedis > mostPermits {
		p.Add("WithoutRedis", "%d is not between 0 and %d", c.WithoutRedis, mostPermits)
	}
	return p.Err()
}

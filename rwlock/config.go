package rwlock

import (
	"time"

	"github.com/cacheguard/go/internal/run/config"
)

// Config says how a Locker behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so.
type Config struct {
	// Prefix begins every key in Redis: the lock of name N is at Prefix:{N}:rw. Lockers with the same Prefix on the same
	// Redis exclude one another. It may not contain braces. A name has 1 to 65,536 bytes. Default: lock.
	Prefix string

	// Instance is the name of this process. The Tokens of its leases end with it, after an @, so that Inspect can say who holds a
	// lock for writing. At most 50 bytes, without spaces and control characters. Default: host:pid.
	Instance string

	// TTL is the length of a lease: how long a lock outlives a holder that died. Each holder has its own, and those with
	// the same Prefix may differ. From 100 milliseconds to 10 years. Milliseconds count. Default: 10 seconds.
	TTL time.Duration

	// FixedLease ends a lease TTL after it began, unless Extend is called. Default: false, a watchdog renews leases at a third of TTL,
	// until they are unlocked.
	FixedLease bool

	// MaxHold ends a lease that was held for that long, as if it had been lost. It is for holders that hang while the
	// watchdog goes on. Redis gives the lock to others at most TTL later. At least TTL. Default and -1: no limit.
	MaxHold time.Duration

	// Replicas is how many replicas must acknowledge (WAIT) an acquisition, and each renewal, before it counts, so that a failover
	// to one of them forgets no lock. If they do not within RedisTimeout, the lock is released, and the error matches
	// ErrNotReplicated. It costs a request and a round trip to the replicas for each acquisition. docs/locks.md says what it does
	// not promise. Default: 0, off.
	Replicas int

	// RedisTimeout bounds each operation on Redis, whatever the client's own time-outs and retries. Default: 500 ms.
	RedisTimeout time.Duration

	// Hooks are called as things happen, for metrics and tests.
	Hooks Hooks
}

// common has the fields, all of which other kinds of locks have too.
func (c *Config) common() config.Lock {
	return config.Lock{
		Prefix: c.Prefix, Instance: c.Instance, TTL: c.TTL, FixedLease: c.FixedLease, MaxHold: c.MaxHold, Replicas: c.Replicas,
		RedisTimeout: c.RedisTimeout, Hooks: config.Hooks(c.Hooks),
	}
}

package mutex

import (
	"time"

	"github.com/cacheguard/go/internal/run/config"
)

// Config says how a Locker behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so.
type Config struct {
	// Prefix begins every key in Redis: the lock of name N is at Prefix:{N}:mutex. Lockers with the same Prefix on the same
	// Redis exclude one another. It may not contain braces. A name has 1 to 65,536 bytes. Default: lock.
	Prefix string

	// Instance is the name of this process. The Tokens of its leases end with it, after an @, so that Inspect can say who holds a
	// lock. At most 50 bytes, without spaces and control characters. Default: host:pid.
	Instance string

	// TTL is the length of a lease: how long a lock outlives a holder that died. From 100 milliseconds to 10 years.
	// Milliseconds count. Default: 10 seconds.
	TTL time.Duration

	// FixedLease ends a lease TTL after it began, unless Extend is called. Default: false, a watchdog renews leases at a third of TTL,
	// until they are unlocked.
	FixedLease bool

	// MaxHold ends a lease that was held for that long, as if it had been lost. It is for holders that hang while the
	// watchdog goes on. Redis gives the lock to another at most TTL later. At least TTL. Default and -1: no limit.
	MaxHold time.Duration

	// MinHold is how long a lock stays held at least after it was acquired: if it is unlocked sooner, nobody else gets it until
	// then. It is for jobs that take less time than the clocks of the instances differ, and would otherwise run once on each; see also
	// Once. The server's clock measures it. It does not apply when the holder dies (TTL does), when the context has an owner (WithOwner),
	// or to a Quorum. Default: 0, off.
	MinHold time.Duration

	// Fair makes waiters get the lock in the order in which they asked, across all processes that set it; between
	// processes, to within the time of a request. It costs one more request for each lock that was waited for. Without
	// it, the waiters of one process share a place, and may pass the lock among themselves a few times before another
	// process gets it. Default: false.
	Fair bool

	// Replicas is how many replicas must acknowledge (WAIT) an acquisition, and each renewal, before it counts, so that a
	// failover to one of them forgets no lock. If they do not within RedisTimeout, the lock is released, and the error matches
	// ErrNotReplicated. It costs a request and a round trip to the replicas for each acquisition. docs/locks.md says what it
	// does not promise. A Quorum refuses the field. Default: 0, off.
	Replicas int

	// RedisTimeout bounds each operation on Redis, whatever the client's own time-outs and retries. Default: 500 ms.
	RedisTimeout time.Duration

	// Hooks are called as things happen, for metrics and tests.
	Hooks Hooks
}

// common has the fields that other kinds of locks have too, and whose ranges and defaults are the same for all.
func (c *Config) common() config.Lock {
	return config.Lock{
		Prefix: c.Prefix, Instance: c.Instance, TTL: c.TTL, FixedLease: c.FixedLease, MaxHold: c.MaxHold, Replicas: c.Replicas,
		RedisTimeout: c.RedisTimeout, Hooks: config.Hooks(c.Hooks),
	}
}

// check returns one error that names every other field that is out of range.
func (c *Config) check() error {
	var p config.Problems
	p.Duration("MinHold", c.MinHold)
	if c.MinHold > config.Longest {
		p.Add("MinHold", "%v is more than 10 years", c.MinHold)
	}
	return p.Err()
}

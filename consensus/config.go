package consensus

import (
	"errors"
	"time"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/mutex"
)

// Config says how a Locker behaves. In every field 0 means the default.
type Config struct {
	// Prefix begins the name of every lock in the store. Lockers with the same Prefix on the same store exclude one another.
	// It may not contain braces. Prefix and name may have 1,023 bytes together. Default: lock.
	Prefix string

	// TTL is how long a lock outlives a holder that died or cannot reach the store. From 1 second to 10 years. How a store
	// rounds it, and what else it has to agree with, is in the comment of its package. Default: 10 seconds.
	TTL time.Duration

	// Timeout bounds each request to the store that does not wait for other holders. Default: 2 seconds, and no more than
	// a third of TTL.
	Timeout time.Duration

	// Hooks are called as things happen, for metrics and tests. Metrics.Lock returns some.
	Hooks Hooks
}

// Hooks are the hooks of package mutex.
type Hooks = mutex.Hooks

const (
	longestName    = 1024 // bytes, with the Prefix: PostgreSQL's indexes have 2,700, and escapes treble what is in a path
	minTTL         = time.Second
	defaultTimeout = 2 * time.Second
)

func (c Config) check() error {
	var p config.Problems
	p.Prefix(c.Prefix)
	if len(c.Prefix) > longestName-2 {
		p.Add("Prefix", "%d bytes are more than %d", len(c.Prefix), longestName-2)
	}
	if c.TTL != 0 && (c.TTL < minTTL || c.TTL > config.Longest) {
		p.Add("TTL", "%v is not between %v and 10 years", c.TTL, minTTL)
	}
	if c.Timeout != 0 && (c.Timeout < time.Millisecond || c.Timeout > config.Longest) {
		p.Add("Timeout", "%v is not between a millisecond and 10 years", c.Timeout)
	}
	return p.Err()
}

func (c Config) withDefaults() Config {
	t := config.Lock{Prefix: c.Prefix, TTL: c.TTL}.WithDefaults()
	c.Prefix, c.TTL = t.Prefix, t.TTL
	config.SetDefault(&c.Timeout, min(defaultTimeout, c.TTL/3))
	return c
}

// The errors of package mutex, so that a caller need not know which rung its lock is on.
var (
	// ErrNotAcquired is returned when somebody else has the lock: by TryLock at once, and by Lock when its context ends after it was told so;
	// then the error matches the context's error and its cause too. A server that says nothing, or a context that has ended before, does not
	// make an error match it.
	ErrNotAcquired = mutex.ErrNotAcquired

	// ErrLeaseLost is the cause of a lease's context when the lease can no longer be trusted. Unlock returns it
	// when the lease was lost before.
	ErrLeaseLost = mutex.ErrLeaseLost

	// ErrClosed is returned by calls on a Locker that is or gets closed, and the cause when the contexts of its
	// leases end.
	ErrClosed = mutex.ErrClosed
)

var (
	errNilLocker = errors.New("consensus: locker is nil (did New return an error?)")
	errNilLease  = errors.New("consensus: lease is nil (did Lock return an error?)")
)

var lockErrors = lifecycle.LockErrors{Package: "consensus"}

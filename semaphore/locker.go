package semaphore

import (
	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/permits"
)

const pkg = "semaphore" // in errors

// Locker hands out permits that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	permits      *permits.Locker
	withoutRedis int // Config.WithoutRedis
	alone        alone
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	locks, err := permits.New(pkg, rdb, cfg.common(), cfg.Permits, cfg.check())
	if err != nil {
		return nil, err
	}
	return &Locker{permits: locks, withoutRedis: cfg.WithoutRedis}, nil
}

func (k *Locker) core() *permits.Locker {
	if k == nil || k.permits == nil {
		return &permits.Locker{Locker: locker.Nil(pkg)}
	}
	return k.permits
}

// Close ends the contexts of all leases of the Locker with ErrClosed, unlocks them, and returns when everything that the
// Locker started has ended; when Redis hangs, that takes the client's time-outs. Waiting calls return ErrClosed. The
// function given to Do must not call it. Close may be called more than once, and always returns nil.
func (k *Locker) Close() error { return k.core().Close(nil) }

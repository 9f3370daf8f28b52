package semaphore

import (
	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

const (
	spareWidth = 4  // how many callers of a process may queue in Redis beside those that could be next, in case that one leaves
	mostWidth  = 64 // how many may at all
)

// Locker hands out permits that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	life    *lifecycle.Lender[*Lease]
	base    *locker.Base
	permits int // Config.Permits
	doors   queue.Doors

	withoutRedis int // Config.WithoutRedis
	alone        alone
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	life := lifecycle.NewLender((*Lease).abort)
	base, err := locker.Open("semaphore", rdb, cfg.common(), cfg.check(), life.Life)
	if err != nil {
		return nil, err
	}
	return &Locker{
		life: life, base: base, permits: cfg.Permits, withoutRedis: cfg.WithoutRedis,
		doors: queue.Doors{Width: min(cfg.Permits+spareWidth, mostWidth), RoundTrip: base.RoundTrip},
	}, nil
}

// Close ends the contexts of all leases of the Locker with ErrClosed, unlocks them, and returns when everything that the
// Locker started has ended; when Redis hangs, that takes the client's time-outs. Waiting calls return ErrClosed. The
// function given to Do must not call it. Close may be called more than once, and always returns nil.
func (k *Locker) Close() error {
	if k == nil {
		return nil // New failed: there is nothing to close
	}
	k.life.Close(ErrClosed)
	k.base.Close()
	return nil
}

// begin begins a call on the semaphore of the name. Each nil is followed by one k.life.Done.
func (k *Locker) begin(name string) error {
	if k == nil {
		return errNilLocker
	}
	return lockErrors.Begin(k.life.Life, name)
}

package rwlock

import (
	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// doorWidth is how many writers of a process may queue for a lock in Redis: the next one, and some in case that one leaves.
const doorWidth = 4

// readersWidth is how many impatient readers of a process may do so.
const readersWidth = 64

// Locker hands out read-write locks that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	life    *lifecycle.Lender[*Lease]
	base    *locker.Base
	writers queue.Doors
	readers queue.Doors // those that are impatient
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	life := lifecycle.NewLender((*Lease).abort)
	base, err := locker.Open("rwlock", rdb, cfg.common(), nil, life.Life)
	if err != nil {
		return nil, err
	}
	return &Locker{
		life: life, base: base,
		writers: queue.Doors{Width: doorWidth, RoundTrip: base.RoundTrip},
		readers: queue.Doors{Width: readersWidth, RoundTrip: base.RoundTrip, Shared: true},
	}, nil
}

// Close ends the contexts of all leases of the Locker with ErrClosed, unlocks them, and returns when everything that the
// Locker started has ended; when Redis hangs, that takes the client's time-outs. Waiting calls return ErrClosed. The
// function given to Do or RDo must not call it. Close may be called more than once, and always returns nil.
func (k *Locker) Close() error {
	if k == nil {
		return nil // New failed: there is nothing to close
	}
	k.life.Close(ErrClosed)
	k.base.Close()
	return nil
}

// begin begins a call on the lock of the name. Each nil is followed by one k.life.Done.
func (k *Locker) begin(name string) error {
	if k == nil {
		return errNilLocker
	}
	return lockErrors.Begin(k.life.Life, name)
}
